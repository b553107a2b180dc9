// Chooses the pairs of a block that become composite instructions, and their positions (composite-hpca13 §3.3): a
// matching in the dependence graph, with one slot per warp for intermediate results.
//
// The problem is independent of instructions. Nodes 0, 1, ... are in block order. A pair is two nodes, the second of
// which reads the first; together they are one item. Single-node items keep their order; a pair may be anywhere after
// its operands and before its readers. The pair leaves the first half's result in the slot: if other items read it,
// neither another pair nor a node that clobbers the slot may be between the pair and its last reader. An instruction of
// a pair that reads the slot does so before it writes it.
#pragma once

#include <cstdint>
#include <vector>

namespace ptxrewrite::transforms::composite {

struct Pair {
  uint32_t first = 0, second = 0; // first < second
  int32_t gain = 0;               // positive
};

struct Problem {
  std::vector<std::vector<uint32_t>> reads; // by node: nodes before it whose results it reads
  std::vector<bool> clobbers;               // by node: the slot is lost there
  std::vector<Pair> pairs;
  // Nodes outside [begin, end) stay first and last: pairs are placed between them.
  uint32_t begin = 0, end = UINT32_MAX;
  uint32_t size() const { return static_cast<uint32_t>(reads.size()); }
};

// One node, or one pair.
struct Item {
  uint32_t node = 0; // for a pair: its second node
  int32_t pair = -1; // index into Problem::pairs
  bool operator==(const Item&) const = default;
};

struct PairChoice {
  std::vector<Item> order; // every node occurs once, alone or in a pair
  int64_t gain = 0;        // sum over all pairs in `order`
};

struct Effort {
  uint32_t exact_pairs = 14; // the largest number of candidates in a segment of the block that is searched exhaustively
  uint64_t steps = 200000;   // limit for that search; when it is reached, the best result so far is used
};

// The optimal choice for small segments of a block, a good one for large segments.
PairChoice choose_pairs(const Problem& problem, const Effort& effort = {});

// Does the order satisfy the rules above? For tests and assertions.
bool is_valid(const Problem& problem, const std::vector<Item>& order);

} // namespace ptxrewrite::transforms::composite
