// Dominators, post-dominators, loops and liveness against their definitions, by search on random graphs.
#include "ir/flow/def_use.h"
#include "ir/flow/liveness.h"
#include "ir/flow/loops.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/random_functions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace ptxrewrite::tests::analysis_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

constexpr unsigned no_block = UINT32_MAX;

// Blocks reachable from `from` without entering `removed`.
std::vector<bool> reach(const Function& function, unsigned from, unsigned removed) {
  std::vector<bool> seen(function.blocks.size(), false);
  if (from == removed) return seen;
  std::vector<unsigned> work{from};
  seen[from] = true;
  while (!work.empty()) {
    unsigned block = work.back();
    work.pop_back();
    for (EdgeId edge : function.successors(BlockId(block))) {
      unsigned to = function.edges[edge].to.index();
      if (seen[to] || to == removed) continue;
      seen[to] = true;
      work.push_back(to);
    }
  }
  return seen;
}

bool reaches_exit(const Function& function, unsigned from, unsigned removed) {
  std::vector<bool> seen = reach(function, from, removed);
  for (unsigned i = 0; i < seen.size(); ++i)
    if (seen[i] && function.successors(BlockId(i)).empty()) return true;
  return false;
}

} // namespace

TEST_CASE("dominators are the blocks whose removal cuts the way from the entry") {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    Module module;
    Function function(module);
    unsigned count = 1 + below(random, round % 20 == 0 ? 120 : 14); // another algorithm above 48
    make_random_graph(function, random, count);
    ControlFlow flow(function);
    DominatorTree tree(function, flow);
    std::vector<bool> reachable = reach(function, 0, no_block);
    for (unsigned upper = 0; upper < count; ++upper) {
      CHECK(flow.reachable(BlockId(upper)) == reachable[upper]);
      std::vector<bool> without = reach(function, 0, upper);
      for (unsigned lower = 0; lower < count; ++lower) {
        if (!reachable[upper] || !reachable[lower]) continue;
        REQUIRE(tree.dominates(BlockId(upper), BlockId(lower)) == !without[lower]);
        if (!without[lower]) CHECK(tree.preorder(BlockId(upper)) <= tree.preorder(BlockId(lower)));
      }
    }
    for (unsigned block = 1; block < count; ++block) {
      BlockId parent = tree.immediate_dominator(BlockId(block));
      REQUIRE(parent.valid() == reachable[block]);
      if (!parent) continue;
      CHECK(tree.strictly_dominates(parent, BlockId(block)));
      CHECK(tree.depth(BlockId(block)) == tree.depth(parent) + 1);
      CHECK(std::ranges::count(tree.children(parent), BlockId(block)) == 1);
      // All other strict dominators dominate the parent.
      for (unsigned other = 0; other < count; ++other)
        if (reachable[other] && tree.strictly_dominates(BlockId(other), BlockId(block)))
          REQUIRE(tree.dominates(BlockId(other), parent));
    }
  }
}

TEST_CASE("post-dominators are the blocks whose removal cuts every way to an exit") {
  Random random(2);
  int compared = 0, large = 0;
  for (int round = 0; round < 600; ++round) {
    Module module;
    Function function(module);
    unsigned count = 1 + below(random, round % 20 == 0 ? 120 : 12); // another algorithm above 48
    make_random_graph(function, random, count);
    ControlFlow flow(function);
    PostDominatorTree tree(function, flow);
    std::vector<bool> reachable = reach(function, 0, no_block);
    bool endless = false;
    for (unsigned i = 0; i < count; ++i)
      endless |= reachable[i] && !reaches_exit(function, i, no_block);
    if (endless) continue;
    ++compared;
    large += count > 48;
    for (unsigned lower = 0; lower < count; ++lower)
      for (unsigned upper = 0; upper < count; ++upper) {
        if (!reachable[upper] || !reachable[lower]) continue;
        REQUIRE(tree.post_dominates(BlockId(lower), BlockId(upper)) == !reaches_exit(function, upper, lower));
        if (tree.immediate_post_dominator(BlockId(upper)) == BlockId(lower)) {
          CHECK(lower != upper);
          CHECK(tree.post_dominates(BlockId(lower), BlockId(upper)));
        }
        // All other strict post-dominators post-dominate the immediate one.
        if (const BlockId next = tree.immediate_post_dominator(BlockId(upper));
            lower != upper && tree.post_dominates(BlockId(lower), BlockId(upper))) {
          REQUIRE(next.valid());
          CHECK(tree.post_dominates(BlockId(lower), next));
        }
      }
  }
  CHECK(compared > 200);
  CHECK(large > 0);
}

TEST_CASE("an endless loop and a guarded exit lead to the virtual exit") {
  // entry -> A | B; A loops for ever; B exits. Only the virtual exit post-dominates the entry.
  ReadText text(kernel("@%p1 bra B;\nA:\nst.global.u32 [%rd1], %r1;\nbra A;\nB:\nst.global.u32 [%rd1], %r2;\n"));
  REQUIRE(text.ok());
  const Function& function = text.function();
  ControlFlow flow(function);
  PostDominatorTree tree(function, flow);
  CHECK(!tree.immediate_post_dominator(function.entry()).valid());
  ReadText guarded(kernel("@%p1 exit;\nst.global.u32 [%rd1], %r1;\n"));
  REQUIRE(guarded.ok());
  ControlFlow guarded_flow(guarded.function());
  PostDominatorTree guarded_tree(guarded.function(), guarded_flow);
  CHECK(!guarded_tree.immediate_post_dominator(guarded.function().entry()).valid());
}

TEST_CASE("natural loops are the blocks that reach a back edge without passing the header") {
  Random random(3);
  int loops = 0;
  for (int round = 0; round < 500; ++round) {
    Module module;
    Function function(module);
    unsigned count = 2 + below(random, 12);
    make_random_graph(function, random, count);
    ControlFlow flow(function);
    DominatorTree dominators(function, flow);
    LoopForest forest(function, flow, dominators);
    std::set<unsigned> headers;
    for (unsigned header = 0; header < count; ++header) {
      if (!flow.reachable(BlockId(header))) continue;
      std::set<unsigned> body;
      for (unsigned latch = 0; latch < count; ++latch) {
        if (!flow.reachable(BlockId(latch)) || !dominators.dominates(BlockId(header), BlockId(latch))) continue;
        bool back = false;
        for (EdgeId edge : function.successors(BlockId(latch)))
          back |= function.edges[edge].to.index() == header;
        if (!back) continue;
        body.insert(header);
        for (unsigned block = 0; block < count; ++block)
          if (flow.reachable(BlockId(block)) && (block == latch || reach(function, block, header)[latch]))
            body.insert(block);
      }
      if (body.empty()) continue;
      headers.insert(header);
      auto loop = std::find_if(forest.loops().begin(), forest.loops().end(),
                               [&](const Loop& row) { return row.header.index() == header; });
      REQUIRE(loop != forest.loops().end());
      std::set<unsigned> found;
      for (BlockId block : loop->blocks)
        found.insert(block.index());
      REQUIRE(found == body);
      for (unsigned block = 0; block < count; ++block) {
        LoopId id(static_cast<uint32_t>(&*loop - &*forest.loops().begin()));
        REQUIRE(forest.contains(id, BlockId(block)) == (body.count(block) != 0));
      }
      ++loops;
    }
    CHECK(forest.loops().size() == headers.size());
  }
  CHECK(loops > 200);
}

namespace {

// Whether `value` is read on some path from the start of `block` (or its end) before it is certainly written.
class LiveSearch {
public:
  LiveSearch(const Function& function, ValueId value)
      : function_(function), value_(value), seen_(function.blocks.size()) {}

  bool from_start(BlockId block) {
    for (ValueId parameter : function_.parameters(block))
      if (parameter == value_) return false;
    for (InstructionId id : function_.instructions_in(block)) {
      bool read = false, written = false;
      for_each_use(function_, id, [&](ValueId used) { read |= used == value_; });
      if (read) return true;
      for_each_definition(function_, id, [&](ValueId defined) { written |= defined == value_; });
      if (written && (function_.is_ssa || !function_.instructions[id].guard)) return false;
    }
    return from_end(block);
  }
  bool from_end(BlockId block) {
    for (EdgeId edge : function_.successors(block))
      for (ValueId argument : function_.arguments(edge))
        if (argument == value_) return true;
    for (EdgeId edge : function_.successors(block)) {
      BlockId to = function_.edges[edge].to;
      if (seen_[to.index()]) continue;
      seen_[to.index()] = true;
      if (from_start(to)) return true;
    }
    return false;
  }

private:
  const Function& function_;
  ValueId value_;
  std::vector<bool> seen_;
};

void check_liveness(const Function& function) {
  ControlFlow flow(function);
  Liveness liveness(function, flow);
  for (BlockId block : function.layout) {
    CHECK(std::is_sorted(liveness.live_in(block).begin(), liveness.live_in(block).end()));
    CHECK(std::is_sorted(liveness.live_out(block).begin(), liveness.live_out(block).end()));
    for (ValueId value : function.values.ids()) {
      if (function.values[value].is_undefined) {
        CHECK(!liveness.is_live_in(block, value));
        continue;
      }
      REQUIRE(liveness.is_live_in(block, value) == LiveSearch(function, value).from_start(block));
      REQUIRE(liveness.is_live_out(block, value) == LiveSearch(function, value).from_end(block));
    }
  }
}

} // namespace

TEST_CASE("liveness is what a search over all paths finds, outside and in SSA form") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    ReadText text(RandomKernel(seed).text());
    REQUIRE(text.ok());
    check_liveness(text.function());
    REQUIRE(construct_ssa(text.function()).ok());
    check_liveness(text.function());
  }
}

TEST_CASE("definitions and uses are where they are") {
  ReadText text(kernel("mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\n"
                       "st.global.u32 [%rd1], %r1;\n"));
  REQUIRE(text.ok());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  DefUse def_use(function);
  BlockId loop = function.layout[1];
  ValueId parameter = function.parameters(loop)[0];
  CHECK(def_use.definition(parameter).is_parameter());
  CHECK(def_use.definition(parameter).block == loop);
  REQUIRE(def_use.uses(parameter).size() == 1);
  InstructionId add = function.blocks[loop].first;
  CHECK(def_use.uses(parameter)[0].instruction == add);
  CHECK(def_use.uses(parameter)[0].index == 1);
  ValueId sum = function.operands_of(add)[0].as_value();
  CHECK(def_use.definition(sum).instruction == add);
  // setp, the back edge, the store.
  REQUIRE(def_use.uses(sum).size() == 3);
  int edges = 0;
  for (const Use& use : def_use.uses(sum))
    edges += use.edge.valid();
  CHECK(edges == 1);
  InstructionId branch = function.terminator(loop);
  const Use& guard = def_use.uses(function.instructions[branch].guard)[0];
  CHECK(guard.instruction == branch);
  CHECK(guard.index == Use::guard_index);
}

} // namespace ptxrewrite::tests::analysis_test
