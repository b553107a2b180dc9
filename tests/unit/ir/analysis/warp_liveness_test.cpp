// Soft definitions: on the shapes of RegLess Fig. 7 and on those that its Algorithm 2 misses, by hand, and on random
// graphs against a simulation of each lane of a warp.
#include "ir/machine/registers/warp_liveness.h"

#include "ir/core/module.h"
#include "tests/unit/ir/analysis/warp_simulator.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <set>

namespace ptxrewrite::tests::warp_liveness_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

// Blocks by their successors; instructions are added as "writes < reads".
struct Graph {
  Module module;
  Function function{module};
  RegisterProgram program;

  explicit Graph(const std::vector<std::vector<unsigned>>& successors) {
    function.has_body = true;
    for (size_t i = 0; i < successors.size(); ++i)
      function.place_block(function.add_block());
    for (size_t i = 0; i < successors.size(); ++i) {
      std::vector<EdgeId> edges;
      for (unsigned to : successors[i])
        edges.push_back(function.add_edge(BlockId(static_cast<uint32_t>(i)), BlockId(to)));
      function.set_successors(BlockId(static_cast<uint32_t>(i)), edges, false);
    }
    program = register_blocks(function);
    REQUIRE(program.blocks.size() == successors.size());
  }
  Graph& add(uint32_t block, std::vector<unsigned> writes, std::vector<unsigned> reads, bool guarded = false) {
    RegisterInstruction instruction;
    for (unsigned r : writes)
      instruction.writes.set(r);
    for (unsigned r : reads)
      instruction.reads.set(r);
    instruction.guarded = guarded;
    program.blocks[block].instructions.push_back(instruction);
    return *this;
  }
  bool soft(uint32_t block, uint32_t index, unsigned r) const {
    return WarpLiveness(program).soft(block, index).test(r);
  }
  bool by_algorithm_2(uint32_t block, unsigned r) const {
    return is_soft_by_algorithm_2(program, WarpLiveness(program), block, r);
  }
};

// For each lane and register: the writes during which the lane was inactive since it last wrote or read the register.
class Witness : public WarpSimulator {
public:
  using Definition = std::array<uint32_t, 3>; // block, instruction, register

  Witness(const RegisterProgram& program, Random& random) : WarpSimulator(program, random), program_(program) {}
  std::set<Definition> soft;

protected:
  void execute(uint32_t block, uint32_t index, Mask active, Mask writing) override {
    (void)active;
    const RegisterInstruction& instruction = program_.blocks[block].instructions[index];
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (writing >> lane & 1) {
        for_each(instruction.reads, [&](unsigned r) { soft.merge(slept_[{lane, r}]); });
        for_each(instruction.reads | instruction.writes, [&](unsigned r) { slept_[{lane, r}].clear(); });
      }
    for (unsigned lane = 0; lane < lanes; ++lane)
      if ((alive() & ~writing) >> lane & 1)
        for_each(instruction.writes, [&](unsigned r) { slept_[{lane, r}].insert({block, index, r}); });
  }

private:
  template <class Visit> void for_each(const RegisterSet& set, Visit&& visit) {
    for (unsigned r = 0; r < program_.registers; ++r)
      if (set.test(r)) visit(r);
  }
  const RegisterProgram& program_;
  std::map<std::pair<unsigned, unsigned>, std::set<Definition>> slept_;
};

// Whether every block has a path to an end.
bool all_end(const RegisterProgram& program) {
  std::vector<bool> ends(program.blocks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 0; b < program.blocks.size(); ++b) {
      const std::vector<uint32_t>& next = program.blocks[b].successors;
      bool end = next.empty() || std::ranges::any_of(next, [&](uint32_t to) { return ends[to]; });
      changed |= end != ends[b];
      ends[b] = end;
    }
  }
  return std::ranges::all_of(ends, [](bool end) { return end; });
}

} // namespace

TEST_CASE("straight line: definitions are whole, but for guarded ones whose old value is read") {
  Graph graph({std::vector<unsigned>{}});
  graph.add(0, {0}, {}).add(0, {0}, {}, true).add(0, {1}, {0}).add(0, {0}, {}, true);
  CHECK(!graph.soft(0, 0, 0));
  CHECK(graph.soft(0, 1, 0));
  CHECK(!graph.soft(0, 3, 0)); // it has no reader
  CHECK(!graph.by_algorithm_2(0, 0));
}

TEST_CASE("Fig. 7: the old value is needed on the other way") {
  // 0 defines, 1 defines again, 2 or 3 reads.
  Graph graph({{1, 2}, {3}, {3}, {}});
  graph.add(0, {0}, {}).add(1, {0}, {}).add(1, {}, {0}).add(2, {}, {0});
  CHECK(graph.soft(1, 0, 0));
  CHECK(graph.by_algorithm_2(1, 0));
  CHECK(!graph.soft(0, 0, 0));
}

TEST_CASE("Fig. 7: where the ways have met again, a definition is whole") {
  Graph graph({{1, 2}, {3}, {3}, {}});
  graph.add(0, {0}, {}).add(2, {}, {0}).add(3, {0}, {}).add(3, {}, {0});
  CHECK(!graph.soft(3, 0, 0));
  CHECK(!graph.by_algorithm_2(3, 0));
}

TEST_CASE("Fig. 7: nobody needs the old value on the other way") {
  Graph graph({{1, 2}, {3}, {3}, {}});
  graph.add(0, {0}, {}).add(0, {}, {0}).add(1, {0}, {}).add(1, {}, {0});
  CHECK(!graph.soft(1, 0, 0));
  CHECK(!graph.by_algorithm_2(1, 0));
}

TEST_CASE("two ways that both define what is read where they meet: the second one finds the lanes of the first") {
  Graph graph({{1, 2}, {3}, {3}, {}});
  graph.add(1, {0}, {}).add(2, {0}, {}).add(3, {}, {0});
  CHECK(graph.soft(1, 0, 0));
  CHECK(graph.soft(2, 0, 0));
  CHECK(!graph.by_algorithm_2(1, 0)); // the paper misses it
}

TEST_CASE("a loop of one block that lanes leave one by one") {
  // do { r = ...; } while (...); use r
  Graph graph({{1}, {1, 2}, {}});
  graph.add(1, {0}, {1}).add(1, {1}, {0, 1}).add(2, {}, {0});
  CHECK(graph.soft(1, 0, 0));
  CHECK(!graph.soft(1, 1, 1));        // the counter is not read after the loop
  CHECK(!graph.by_algorithm_2(1, 0)); // the paper misses it
}

TEST_CASE("a loop with a break") {
  // 1: header, 2: body, 3: rest of the body, 4: after the loop.
  Graph graph({{1}, {2, 4}, {3, 4}, {1}, {}});
  graph.add(0, {0}, {}).add(2, {0}, {0}).add(3, {1}, {0}).add(3, {}, {1}).add(4, {}, {0});
  CHECK(graph.soft(2, 0, 0));  // lanes that left at the header still hold their value
  CHECK(!graph.soft(3, 0, 1)); // dies in the loop
  CHECK(graph.by_algorithm_2(2, 0));
}

TEST_CASE("nested divergence: lanes of the outer branch wait, too") {
  // 0 -> {1, 6}, 1 -> {2, 3}, both -> 4 -> 5, 6 -> 5.
  Graph graph({{1, 6}, {2, 3}, {4}, {4}, {5}, {}, {5}});
  graph.add(0, {0}, {}).add(2, {0}, {}).add(4, {1}, {0}).add(4, {0}, {1}).add(5, {}, {0}).add(6, {2}, {0});
  CHECK(graph.soft(2, 0, 0));
  CHECK(graph.soft(4, 1, 0)); // after the inner reconvergence point, but before the outer one
  CHECK(!graph.soft(4, 0, 1));
}

TEST_CASE("random graphs: exactly the definitions that some lane sleeps through") {
  unsigned definitions = 0, found = 0, exact = 0, paper_only = 0, rule_only = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Module module;
    Function function(module);
    RegisterProgram program = random_register_program(random, function, 1 + below(random, 6), 4);
    WarpLiveness liveness(program);
    std::set<Witness::Definition> rule, seen;
    for (uint32_t b = 0; b < program.blocks.size(); ++b)
      for (uint32_t i = 0; i < program.blocks[b].instructions.size(); ++i)
        for (unsigned r = 0; r < program.registers; ++r) {
          if (!program.blocks[b].instructions[i].writes.test(r)) continue;
          ++definitions;
          bool soft = liveness.soft(b, i).test(r), paper = is_soft_by_algorithm_2(program, liveness, b, r);
          if (soft) rule.insert({b, i, r});
          rule_only += soft && !paper ? 1 : 0;
          paper_only += paper && !soft ? 1 : 0;
        }
    for (unsigned run = 0; run < 4000 && (run < 200 || (seen != rule && all_end(program))); ++run) {
      Witness witness(program, random);
      witness.run(40);
      seen.merge(witness.soft);
    }
    CHECK(std::ranges::includes(rule, seen));
    // Reads of lanes that wait for others in an endless loop are never observed.
    if (!all_end(program)) continue;
    CHECK(seen == rule);
    ++exact;
    found += static_cast<unsigned>(rule.size());
  }
  CHECK(found > 500);
  CHECK(exact > 300);
  std::printf("%u definitions, %u soft; %u of them not by Algorithm 2, %u by it alone\n", definitions, found, rule_only,
              paper_only);
}

} // namespace ptxrewrite::tests::warp_liveness_test
