// Uniform values of nested loops and branches against the definition: a value varies if an operand varies, or if lanes
// that a divergent branch parted bring different values to a block, found by a search from each branch.
#include "ir/machine/prepare/uniform.h"

#include "ir/core/module.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/nested_kernel.h"

#include <doctest/doctest.h>

#include <vector>

namespace ptxrewrite::tests::uniform_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

class Definition {
public:
  Definition(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
             const PostDominatorTree& post_dominators)
      : function_(function), flow_(flow), dominators_(dominators), post_dominators_(post_dominators),
        varying_(function.values.size()) {
    for (bool changed = true; changed;)
      changed = step();
  }
  bool varies(ValueId value) const { return varying_[value.index()]; }

private:
  bool mark(ValueId value) {
    const bool fresh = !varying_[value.index()];
    varying_[value.index()] = true;
    return fresh;
  }
  bool step() {
    bool changed = false;
    for (BlockId block : flow_.reverse_postorder()) {
      for (InstructionId id : function_.instructions_in(block)) {
        if (function_.instructions[id].kind != InstructionKind::real) continue;
        bool varies = false;
        for (const Operand& operand : function_.operands_of(id))
          varies |= operand.is(OperandKind::special_register) &&
                    static_cast<SpecialRegister>(operand.id) == SpecialRegister::tid;
        for_each_use(function_, id, [&](ValueId value) { varies |= this->varies(value); });
        if (varies) for_each_definition(function_, id, [&](ValueId value) { changed |= mark(value); });
      }
      for (EdgeId edge : function_.successors(block)) {
        const auto parameters = function_.parameters(function_.edges[edge].to);
        for (size_t i = 0; i < parameters.size(); ++i)
          if (varies(function_.arguments(edge)[i])) changed |= mark(parameters[i]);
      }
      const ValueId guard = condition(block);
      if (guard && varies(guard)) changed |= mark_joins(block);
    }
    return changed;
  }
  ValueId condition(BlockId block) const {
    const InstructionId branch = function_.terminator(block);
    return branch && function_.successors(block).size() > 1 ? function_.instructions[branch].guard : ValueId();
  }
  bool mark_joins(BlockId branch) {
    bool changed = false;
    const BlockId end = post_dominators_.immediate_post_dominator(branch);
    std::vector<bool> seen(function_.blocks.size());
    std::vector<BlockId> work;
    auto go_on = [&](BlockId from) {
      for (EdgeId edge : function_.successors(from))
        work.push_back(function_.edges[edge].to);
    };
    for (go_on(branch); !work.empty();) {
      const BlockId block = work.back();
      work.pop_back();
      if (seen[block.index()]) continue;
      seen[block.index()] = true;
      const BlockId before = dominators_.immediate_dominator(block);
      if (!before || dominators_.dominates(before, branch))
        for (ValueId parameter : function_.parameters(block))
          changed |= mark(parameter);
      if (block != end) go_on(block);
    }
    return changed;
  }

  const Function& function_;
  const ControlFlow& flow_;
  const DominatorTree& dominators_;
  const PostDominatorTree& post_dominators_;
  std::vector<bool> varying_;
};

} // namespace

TEST_CASE("values of nested loops are uniform as by definition") {
  size_t uniform = 0, varying = 0, large = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    ReadText text(NestedKernel(seed).text());
    REQUIRE(text.ok());
    Function& function = *text.module->functions[0];
    REQUIRE(construct_ssa(function).ok());
    const ControlFlow flow(function);
    const DominatorTree dominators(function, flow);
    const PostDominatorTree post_dominators(function, flow);
    const UniformValues values(function, flow, dominators, post_dominators);
    const Definition definition(function, flow, dominators, post_dominators);
    large += function.layout.size() >= 64 ? 1 : 0;
    for (BlockId block : flow.reverse_postorder())
      for (ValueId parameter : function.parameters(block)) {
        CHECK(values.uniform(parameter) != definition.varies(parameter));
        ++(values.uniform(parameter) ? uniform : varying);
      }
  }
  CHECK(large > 250);
  CHECK(uniform > 1000);
  CHECK(varying > 1000);
}

TEST_CASE("what is computed, found among what is read, is what is found from the start") {
  size_t wider = 0, uniform = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::string source = NestedKernel(seed).text();
    for (size_t at = source.find("mov.u32 "); at != source.npos; at = source.find("mov.u32 ", at + 1))
      if (const size_t comma = source.find(',', at); source[comma + 2] != '%')
        source.replace(at, source.find(';', at) - at,
                       "ld.global.u32 " + source.substr(at + 8, comma - at - 8) + ", [g]");
    if (seed % 2) source.replace(source.find(")\n{"), 1, ") .reqntid 64, 1, 1 ");
    ReadText text(source);
    REQUIRE_MESSAGE(text.ok(), text.messages());
    Function& function = *text.module->functions[0];
    REQUIRE(construct_ssa(function).ok());
    const ControlFlow flow(function);
    const DominatorTree dominators(function, flow);
    const PostDominatorTree post_dominators(function, flow);
    const UniformValues computed(function, flow, dominators, post_dominators);
    const UniformValues read(function, flow, dominators, post_dominators, UniformSources::read);
    const UniformValues among = UniformValues::computed_among(read);
    for (ValueId value : function.values.ids()) {
      CHECK(among.uniform(value) == computed.uniform(value));
      uniform += computed.uniform(value) ? 1 : 0;
      wider += read.uniform(value) && !computed.uniform(value) ? 1 : 0;
    }
    for (BlockId block : flow.reverse_postorder())
      CHECK(among.branch_is_uniform(block) == computed.branch_is_uniform(block));
  }
  CHECK(uniform > 1000);
  CHECK(wider > 1000);
}

TEST_CASE("what is read from one address, and votes, are uniform if what is read counts") {
  ReadText text(".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p)\n{\n.reg .pred %p<3>; "
                ".reg .b32 %r<9>; .reg .b64 %l<5>;\nld.param.u64 %l1, [p];\nmov.u32 %r1, %tid.x;\n"
                "mul.wide.u32 %l2, %r1, 4;\nadd.u64 %l3, %l1, %l2;\nld.global.u32 %r2, [%l1];\n"
                "ld.global.u32 %r3, [%l3];\nsetp.ne.u32 %p1, %r3, 0;\nvote.sync.any.pred %p2, %p1, -1;\n"
                "atom.global.add.u32 %r4, [%l1], 1;\nselp.u32 %r5, %r2, %r3, %p2;\nst.global.u32 [%l3], %r5;\n"
                "st.global.u32 [%l3], %r4;\nret;\n}\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  const ControlFlow flow(function);
  const DominatorTree dominators(function, flow);
  const PostDominatorTree post_dominators(function, flow);
  const UniformValues computed(function, flow, dominators, post_dominators);
  const UniformValues read(function, flow, dominators, post_dominators, UniformSources::read);
  const auto value = [&](std::string_view name) {
    for (ValueId id : function.values.ids())
      if (function.value_name(id) == name) return id;
    return ValueId();
  };
  for (const char* name : {"%l1"})
    CHECK((computed.uniform(value(name)) && read.uniform(value(name))));
  for (const char* name : {"%r1", "%l2", "%l3", "%r3", "%p1", "%r4", "%r5"})
    CHECK_FALSE((computed.uniform(value(name)) || read.uniform(value(name))));
  for (const char* name : {"%r2", "%p2"})
    CHECK((!computed.uniform(value(name)) && read.uniform(value(name))));
}

} // namespace ptxrewrite::tests::uniform_test
