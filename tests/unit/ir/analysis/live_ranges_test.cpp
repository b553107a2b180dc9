// Live ranges of machine values in nested loops against the definition: a value is live at the start of a block if a
// way from there to a reader does not pass its definition.
#include "ir/core/module.h"
#include "ir/machine/registers/machine_values.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/nested_kernel.h"

#include <doctest/doctest.h>

#include <vector>

namespace ptxrewrite::tests::live_ranges_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

// What a block reads before it writes it, and what it writes.
struct BlockAccesses {
  std::vector<bool> reads, writes; // by ValueId
};

class Definition {
public:
  Definition(const Function& function, const ControlFlow& flow, const MachineValues& values)
      : function_(function), values_(values), live_in_(function.blocks.size()) {
    std::vector<BlockAccesses> accesses(function.blocks.size());
    for (BlockId block : function.layout) {
      accesses[block.index()] = accesses_of(block);
      live_in_[block.index()].resize(function.values.size());
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (BlockId block : flow.reverse_postorder())
        changed |= update(block, accesses[block.index()]);
    }
  }
  bool is_live_into(BlockId block, ValueId value) const { return live_in_[block.index()][value.index()]; }

private:
  BlockAccesses accesses_of(BlockId block) const {
    BlockAccesses result{std::vector<bool>(function_.values.size()), std::vector<bool>(function_.values.size())};
    const auto read = [&](ValueId value) {
      if (!result.writes[value.index()]) result.reads[value.index()] = true;
    };
    for (ValueId parameter : function_.parameters(block))
      result.writes[parameter.index()] = true;
    for (InstructionId id : function_.instructions_in(block)) {
      for (ValueId value : values_.reads(id))
        read(value);
      for (ValueId value : values_.writes(id))
        result.writes[value.index()] = true;
    }
    for (EdgeId edge : function_.successors(block)) {
      const auto parameters = function_.parameters(function_.edges[edge].to);
      for (size_t i = 0; i < parameters.size(); ++i)
        if (values_.in_register(parameters[i]))
          for (ValueId value : values_.stands_for(function_.arguments(edge)[i]))
            read(value);
    }
    return result;
  }
  bool update(BlockId block, const BlockAccesses& accesses) {
    bool changed = false;
    for (ValueId value : function_.values.ids()) {
      bool live = accesses.reads[value.index()];
      for (EdgeId edge : function_.successors(block))
        live |= is_live_into(function_.edges[edge].to, value) && !accesses.writes[value.index()];
      changed |= live && !is_live_into(block, value);
      if (live) live_in_[block.index()][value.index()] = true;
    }
    return changed;
  }

  const Function& function_;
  const MachineValues& values_;
  std::vector<std::vector<bool>> live_in_; // by BlockId and ValueId
};

} // namespace

TEST_CASE("values of nested loops are live as by definition") {
  size_t live = 0, dead = 0, large = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    ReadText text(NestedKernel(seed).text());
    REQUIRE(text.ok());
    Function& function = *text.module->functions[0];
    REQUIRE(construct_ssa(function).ok());
    const ControlFlow flow(function);
    const MachineValues values(function, flow, 80);
    const Definition definition(function, flow, values);
    large += function.layout.size() >= 64 ? 1 : 0;
    bool all_agree = true;
    for (BlockId block : flow.reverse_postorder())
      for (ValueId value : function.values.ids()) {
        if (!values.in_register(value)) continue;
        const bool is_live = definition.is_live_into(block, value);
        all_agree &= values.live_at(value, 2 * values.start_of(block)) == is_live;
        ++(is_live ? live : dead);
      }
    CHECK(all_agree);
  }
  CHECK(large > 50);
  CHECK(live > 10'000);
  CHECK(dead > 10'000);
}

} // namespace ptxrewrite::tests::live_ranges_test
