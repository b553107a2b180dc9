// The choice of pairs against brute force: every order of a small block's items permitted by the paper's rules, found
// by emitting item by item, without the solver's windows, segments or bounds.
#include "transforms/composite/composite_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

namespace ptxrewrite::tests::composite_choice_test {

using namespace ptxrewrite::transforms::composite;

namespace {

// Emits items in sequence: the next single node, or any pair whose sources are available. Caches the best remaining
// gain of each state.
class BruteForce {
public:
  explicit BruteForce(const Problem& problem) : problem_(problem) {}
  int64_t best() { return from({}); }

private:
  struct State {
    uint32_t done = 0;    // nodes, as bits
    uint32_t in_slot = 0; // nodes that are first halves: their results are not in registers
    int32_t writer = -1;  // the first half whose result the slot holds
    uint32_t alone = 0;   // nodes below it can no longer be single: single nodes keep their order
    auto operator<=>(const State&) const = default;
  };
  static constexpr int64_t impossible = INT64_MIN / 2;

  // Whether the sources of this half are available. `own`: its partner.
  bool readable(const State& state, uint32_t node, uint32_t own) const {
    return std::ranges::all_of(problem_.reads[node], [&](uint32_t read) {
      if (read == own) return true;
      if (!(state.done >> read & 1)) return false;
      return !(state.in_slot >> read & 1) || state.writer == static_cast<int32_t>(read);
    });
  }

  int64_t from(const State& state) {
    if (state.done == (uint32_t(1) << problem_.size()) - 1) return 0;
    auto [known, is_new] = known_.try_emplace(state, impossible);
    if (!is_new) return known->second;
    int64_t most = impossible;
    // A single node. Skipped earlier nodes have to be in pairs.
    for (uint32_t node = state.alone; node < problem_.size(); ++node) {
      if ((state.done >> node & 1) || !readable(state, node, UINT32_MAX)) continue;
      State next = state;
      next.done |= uint32_t(1) << node;
      next.alone = node + 1;
      if (problem_.clobbers[node]) next.writer = -1;
      most = std::max(most, from(next));
    }
    for (const Pair& pair : problem_.pairs) {
      if ((state.done >> pair.first & 1) || (state.done >> pair.second & 1)) continue;
      if (!readable(state, pair.first, UINT32_MAX) || !readable(state, pair.second, pair.first)) continue;
      State next = state;
      next.done |= uint32_t(1) << pair.first | uint32_t(1) << pair.second;
      next.in_slot |= uint32_t(1) << pair.first;
      next.writer = static_cast<int32_t>(pair.first);
      most = std::max(most, pair.gain + from(next));
    }
    return known_[state] = most;
  }

  const Problem& problem_;
  std::map<State, int64_t> known_;
};

Problem random_block(std::mt19937& random, uint32_t nodes) {
  Problem problem;
  auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  problem.reads.resize(nodes);
  problem.clobbers.resize(nodes);
  for (uint32_t node = 1; node < nodes; ++node) {
    problem.clobbers[node] = below(12) == 0;
    for (uint32_t count = below(3); count > 0; --count) {
      uint32_t read = node - 1 - below(std::min(node, 4u));
      if (std::ranges::find(problem.reads[node], read) == problem.reads[node].end())
        problem.reads[node].push_back(read);
    }
    for (uint32_t read : problem.reads[node])
      if (below(3) != 0 && !problem.clobbers[node] && !problem.clobbers[read])
        problem.pairs.push_back({read, node, static_cast<int32_t>(1 + below(3))});
  }
  return problem;
}

} // namespace

TEST_CASE("small blocks: no order of pairs gains more than the chosen one") {
  std::mt19937 random(6);
  uint64_t with_slot_conflicts = 0;
  for (int i = 0; i < 300; ++i) {
    Problem problem = random_block(random, 4 + static_cast<uint32_t>(i % 6));
    PairChoice choice = choose_pairs(problem, {.exact_pairs = 100, .steps = UINT64_MAX});
    REQUIRE(is_valid(problem, choice.order));
    int64_t sum = 0;
    for (const Item& item : choice.order)
      if (item.pair >= 0) sum += problem.pairs[static_cast<size_t>(item.pair)].gain;
    CHECK(choice.gain == sum);
    int64_t best = BruteForce(problem).best();
    CHECK_MESSAGE(choice.gain == best, "block " << i);
    Problem unlimited = problem; // without the slot: only the second half reads a first half
    for (uint32_t node = 0; node < problem.size(); ++node)
      std::erase_if(unlimited.reads[node], [&](uint32_t read) {
        return std::ranges::none_of(problem.pairs,
                                    [&](const Pair& pair) { return pair.first == read && pair.second == node; });
      });
    with_slot_conflicts += choose_pairs(unlimited).gain > choice.gain;
  }
  MESSAGE(with_slot_conflicts << " of 300 blocks are limited by the slot or by other readers");
  CHECK(with_slot_conflicts > 30);
}

TEST_CASE("the choice in large blocks against the complete search") {
  std::mt19937 random(7);
  int64_t greedy = 0, best = 0;
  unsigned worse = 0;
  for (int i = 0; i < 200; ++i) {
    Problem problem = random_block(random, 10);
    PairChoice choice = choose_pairs(problem, {.exact_pairs = 0});
    REQUIRE(is_valid(problem, choice.order));
    int64_t most = BruteForce(problem).best();
    CHECK(choice.gain <= most);
    greedy += choice.gain;
    best += most;
    worse += choice.gain < most;
  }
  double gap = 100 * (1 - static_cast<double>(greedy) / static_cast<double>(best));
  MESSAGE("without complete search: gap to the optimum " << gap << " %, in " << worse << " of 200 blocks");
  CHECK(gap < 3);
}

TEST_CASE("a large block takes little time and is valid") {
  std::mt19937 random(8);
  Problem problem = random_block(random, 3000);
  PairChoice choice = choose_pairs(problem);
  CHECK(is_valid(problem, choice.order));
  CHECK(choice.gain > 1000);
}

TEST_CASE("pairs stand between what is first and what is last") {
  Problem problem{{{}, {}, {1}, {}, {}}, {true, false, false, true, false}, {{1, 2, 1}}};
  problem.begin = 1;
  problem.end = 3;
  PairChoice choice = choose_pairs(problem);
  CHECK(choice.order == std::vector<Item>{{0, -1}, {2, 0}, {3, -1}, {4, -1}});
  CHECK(is_valid(problem, choice.order));
}

TEST_CASE("the slot holds one intermediate result at a time") {
  // 4 reads the results of 0 and 3, 2 that of 1: the pair 2-3 is between the pair 0-1 and the last reader of 0.
  Problem crossing{{{}, {0}, {1}, {2}, {0, 3}}, {false, false, false, false, false}, {{0, 1, 1}, {2, 3, 1}}};
  CHECK(choose_pairs(crossing).gain == 1);
  // If 4 does not depend on 3, the second pair follows it.
  Problem behind{{{}, {0}, {1}, {2}, {0}}, {false, false, false, false, false}, {{0, 1, 1}, {2, 3, 1}}};
  CHECK(choose_pairs(behind).gain == 2);
  // A call between the pair, which it reads, and another reader clobbers the slot.
  Problem call{{{}, {0}, {1}, {0}}, {false, false, true, false}, {{0, 1, 1}}};
  CHECK(choose_pairs(call).gain == 0);
  // A call that does not depend on the pair does not.
  Problem free_call{{{}, {0}, {}, {0}}, {false, false, true, false}, {{0, 1, 1}}};
  CHECK(choose_pairs(free_call).gain == 1);
}

} // namespace ptxrewrite::tests::composite_choice_test
