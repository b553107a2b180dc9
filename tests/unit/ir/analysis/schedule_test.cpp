// Orders of blocks: the pairs of instructions that may be exchanged, by the ISA's rules, and the distance of the greedy
// order from the best one, found for small blocks by trying all orders.
#include "ir/machine/registers/schedule.h"

#include "ir/core/module.h"
#include "ir/ssa/ssa.h"
#include "tests/fuzz/random.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ptxrewrite::tests::schedule_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct OneBlock {
  ReadText text;
  Function* function = nullptr;

  explicit OneBlock(const std::string& body)
      : text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
             ".reg .b64 %a, %b, %c; .reg .b32 %r<40>; .reg .pred %p<9>; .shared .b32 s[9]; .local .b32 l[9];\n"
             "ld.param.u64 %a, [p]; ld.param.u64 %b, [p]; mov.u32 %r0, %tid.x; mov.u32 %r9, %tid.y; \n"
             "setp.lt.u32 %p1, %r0, 7;\n" +
             body + "\nret;\n}\n") {
    REQUIRE(text.ok());
    function = text.module->functions[0].get();
    REQUIRE(construct_ssa(*function).ok());
  }
};

// Whether `second` must stay after `first`, directly or transitively.
bool stays_behind(const std::string& first, const std::string& second) {
  OneBlock block(first + "\n" + second);
  const BlockDependences graph = Dependences(*block.function).of(block.function->entry());
  const uint32_t last = static_cast<uint32_t>(graph.instructions.size()) - 2; // ret is the last one
  std::vector<uint32_t> work{last};
  while (!work.empty()) {
    const uint32_t node = work.back();
    work.pop_back();
    if (node == last - 1) return true;
    for (const Dependence& before : graph.predecessors[node])
      work.push_back(before.node);
  }
  return false;
}

// Tries all orders that the dependences allow.
class AllOrders {
public:
  AllOrders(const Function& function, const Scheduler& scheduler)
      : function_(function), scheduler_(scheduler), graph_(Dependences(function).of(function.entry())),
        waiting_(graph_.instructions.size()) {
    for (size_t node = 0; node < waiting_.size(); ++node)
      waiting_[node] = graph_.predecessors[node].size();
  }
  uint32_t least_live() {
    extend();
    return least_;
  }

private:
  void extend() {
    if (order_.size() == graph_.instructions.size()) {
      least_ = std::min(least_, scheduler_.most_live(function_.entry(), order_));
      return;
    }
    for (size_t node = 0; node < waiting_.size(); ++node) {
      if (waiting_[node] != 0) continue;
      waiting_[node] = SIZE_MAX; // taken
      order_.push_back(graph_.instructions[node]);
      for (const Dependence& behind : graph_.successors[node])
        --waiting_[behind.node];
      extend();
      for (const Dependence& behind : graph_.successors[node])
        ++waiting_[behind.node];
      order_.pop_back();
      waiting_[node] = 0;
    }
  }

  const Function& function_;
  const Scheduler& scheduler_;
  BlockDependences graph_;
  std::vector<size_t> waiting_;
  std::vector<InstructionId> order_;
  uint32_t least_ = UINT32_MAX;
};

// Loads of one address in sequence, and a sum of them in another order: only the positions of the loads are free.
std::string random_block(fuzz::Random& random) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                     ".reg .b64 %a; .reg .b32 %r<40>;\nld.param.u64 %a, [p];\nld.global.u32 %r0, [%a];\n";
  unsigned known = 1;
  for (; known < 6; ++known) {
    auto one = [&] { return "%r" + std::to_string(random.below(known)); };
    const std::string result = "%r" + std::to_string(known);
    if (random.one_in(3))
      text += "ld.global.u32 " + result + ", [%a+" + std::to_string(4 * known) + "];\n";
    else
      text += "xor.b32 " + result + ", " + one() + ", " + one() + ";\n";
  }
  return text + "st.global.u32 [%a], %r" + std::to_string(random.below(known)) + ";\nst.global.u32 [%a+4], %r" +
         std::to_string(known - 1) + ";\nret;\n}\n";
}

} // namespace

TEST_CASE("which accesses keep their order") {
  const std::string load = "ld.global.u32 %r1, [%a];", store = "st.global.u32 [%b], %r0;";
  CHECK(!stays_behind(load, "ld.global.u32 %r2, [%b];"));
  CHECK(stays_behind(load, store));
  CHECK(stays_behind(store, load));
  CHECK(stays_behind(store, "st.global.u32 [%b], %r9;"));
  // Other lanes of the warp may read these addresses.
  CHECK(stays_behind("st.global.u32 [%b], %r0;", "ld.global.u32 %r1, [%b+4];"));
  CHECK(stays_behind("st.shared.u32 [s], %r0;", "ld.shared.u32 %r1, [s+4];"));
  // No other thread reads these addresses.
  CHECK(!stays_behind("st.local.u32 [l], %r0;", "ld.local.u32 %r1, [l+4];"));
  CHECK(stays_behind("st.local.u32 [l], %r0;", "ld.local.u32 %r1, [l];"));
  CHECK(stays_behind("st.local.v2.u32 [l], {%r0, %r9};", "ld.local.u32 %r1, [l+4];"));
  // Separate state spaces, and the generic one, which includes windows of others.
  CHECK(!stays_behind("st.shared.u32 [s], %r0;", load));
  CHECK(!stays_behind(store, "ld.local.u32 %r1, [l];"));
  CHECK(stays_behind("st.shared.u32 [s], %r0;", "ld.u32 %r1, [%a];"));
  CHECK(stays_behind("st.u32 [%a], %r0;", "ld.shared.u32 %r1, [s];"));
  CHECK(stays_behind("st.shared::cta.u32 [s], %r0;", "ld.shared.u32 %r1, [s];"));
}

TEST_CASE("what the memory model orders stays in order") {
  const std::string load = "ld.global.u32 %r1, [%a];";
  for (const char* other :
       {"ld.volatile.global.u32 %r2, [%b];", "atom.global.add.u32 %r2, [%b], 1;", "red.global.add.u32 [%b], 1;",
        "ld.acquire.gpu.global.u32 %r2, [%b];", "ld.relaxed.gpu.global.u32 %r2, [%b];", "membar.gl;", "fence.sc.gpu;",
        "bar.sync 0;", "bar.warp.sync 0xffffffff;", "cp.async.wait_all;"}) {
    CAPTURE(other);
    CHECK(stays_behind(load, other));
    CHECK(stays_behind(other, load));
  }
  // An atomic access of shared memory orders only memory; a barrier orders everything.
  const std::string sum = "add.u32 %r1, %r0, %r9;";
  CHECK(!stays_behind("atom.global.add.u32 %r2, [%b], 1;", sum));
  CHECK(stays_behind("bar.sync 0;", sum));
  CHECK(stays_behind("mov.u32 %r2, %clock;", sum));
  CHECK(stays_behind(sum, "mov.u64 %c, %globaltimer;"));
}

TEST_CASE("carry flag, convergent instructions, guards") {
  CHECK(stays_behind("add.cc.u32 %r1, %r0, %r9;", "addc.u32 %r2, %r0, %r9;"));
  CHECK(stays_behind("addc.u32 %r1, %r0, %r9;", "add.cc.u32 %r2, %r0, %r9;"));
  CHECK(!stays_behind("add.cc.u32 %r1, %r0, %r9;", "add.u32 %r2, %r0, %r9;"));
  const std::string shuffle = "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;";
  CHECK(stays_behind(shuffle, "vote.sync.any.pred %p2, %p1, -1;"));
  CHECK(!stays_behind(shuffle, "add.u32 %r2, %r0, %r9;"));
  // Reads of a register that a guarded instruction overwrites come first, like its own result before its readers.
  CHECK(stays_behind("add.u32 %r2, %r9, 1;", "@%p1 mov.u32 %r9, %r0;"));
  CHECK(stays_behind("@%p1 mov.u32 %r9, %r0;", "add.u32 %r2, %r9, 1;"));
  CHECK(!stays_behind("@%p1 add.u32 %r1, %r0, 1;", "@!%p1 add.u32 %r2, %r0, 1;"));
}

TEST_CASE("few registers: never more than before, and seldom more than in the best order of all") {
  unsigned best_ones = 0, blocks = 0, better = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    fuzz::Random random(seed);
    ReadText text(random_block(random));
    REQUIRE(text.ok());
    Function& function = *text.module->functions[0];
    REQUIRE(construct_ssa(function).ok());
    const BlockId block = function.entry();
    std::vector<InstructionId> as_read;
    for (InstructionId id : function.instructions_in(block))
      as_read.push_back(id);
    const Scheduler scheduler(function, 80);
    const std::vector<InstructionId> order = scheduler.order_of(block, {});
    const uint32_t before = scheduler.most_live(block, as_read);
    const uint32_t after = scheduler.most_live(block, order);
    const uint32_t best = AllOrders(function, scheduler).least_live();
    CHECK(after <= before);
    CHECK(after >= best);
    CHECK(after <= best + 1);
    ++blocks;
    best_ones += after == best ? 1 : 0;
    better += after < before ? 1 : 0;
  }
  CHECK(best_ones * 100 >= blocks * 95);
  CHECK(better > 20);
  MESSAGE(best_ones << " of " << blocks << " as good as can be, " << better << " better than before");
}

TEST_CASE("loads first, up to a limit, and as many levels as loads behind loads") {
  std::string body;
  for (unsigned i = 1; i <= 8; ++i)
    body += "ld.global.u32 %r" + std::to_string(i) + ", [%a+" + std::to_string(4 * i) + "];\nxor.b32 %r0, %r0, %r" +
            std::to_string(i) + ";\n";
  OneBlock block(body + "st.shared.u32 [s], %r0;");
  auto loads_in_a_row = [&](uint32_t limit) {
    const Scheduler scheduler(*block.function, 80);
    const ScheduleOptions options{.goal = ScheduleGoal::early_loads, .live_limit = limit};
    unsigned longest = 0, now = 0;
    for (InstructionId id : scheduler.order_of(block.function->entry(), options)) {
      const bool load = block.function->instructions[id].kind == InstructionKind::real &&
                        is_long_latency(block.function->form_of(id));
      now = load ? now + 1 : 0;
      longest = std::max(longest, now);
    }
    return longest;
  };
  CHECK(loads_in_a_row(32) == 8);
  CHECK(loads_in_a_row(6) < 6);
  CHECK(loads_in_a_row(6) > 1);
}

} // namespace ptxrewrite::tests::schedule_test
