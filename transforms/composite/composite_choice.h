// Which pairs of a block become composite instructions, and where these stand (composite-hpca13 §3.3): a matching in
// the graph of dependences, with one slot per warp for intermediate results.
//
// The problem knows nothing of instructions. Nodes 0, 1, ... stand in the order of the block. A pair is two nodes, the
// second of which reads the first; together they are one item. Items of one node keep their order; those of two stand
// anywhere behind what they read and before what reads them. What the first half computes is in the slot from then on:
// if other items read it, no other pair, and nothing that clobbers the slot, may stand between the pair and the last of
// them. An instruction of a pair that reads the slot does so before it writes it.
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
  // Nodes outside [begin, end) stay first and last: pairs stand between them.
  uint32_t begin = 0, end = UINT32_MAX;
  uint32_t size() const { return static_cast<uint32_t>(reads.size()); }
};

// One node, or one pair.
struct Item {
  uint32_t node = 0; // of a pair: its second node
  int32_t pair = -1; // index into Problem::pairs
  bool operator==(const Item&) const = default;
};

struct PairChoice {
  std::vector<Item> order; // every node once, alone or in a pair
  int64_t gain = 0;        // of all pairs in it
};

struct Effort {
  uint32_t exact_pairs = 14; // a part of the block with as many candidates is searched completely
  uint64_t steps = 200000;   // of that search; when they are spent, the best found so far is taken
};

// The best choice for small parts of a block, a good one for large ones.
PairChoice choose_pairs(const Problem& problem, const Effort& effort = {});

// Whether an order keeps the rules above. For tests and assertions.
bool is_valid(const Problem& problem, const std::vector<Item>& order);

} // namespace ptxrewrite::transforms::composite
