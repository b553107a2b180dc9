// Dead code removal on hand-built functions: removed and kept instructions.
#include "ir/core/builder.h"
#include "ir/edit/dead_code.h"
#include "transforms/manager/pass.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::dce_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using ir::remove_dead_code;

namespace {

// A kernel k(.param .u64 p) in SSA form, with one empty block.
struct Kernel {
  Module module;
  Function& function;
  BlockId entry;
  Builder builder;
  VariableId parameter;

  Kernel() : function(module.function(module.add_function())), builder(function) {
    function.name = module.intern("k");
    function.is_entry = function.has_body = function.is_ssa = true;
    Variable variable;
    variable.name = module.intern("p");
    variable.space = StateSpace::param;
    variable.type = ScalarType::u64;
    parameter = function.variables.add(variable);
    VariableId list[] = {parameter};
    function.signature.parameters = function.variable_lists.add(list);
    entry = new_block();
    builder.at_end(entry);
  }
  BlockId new_block() {
    BlockId block = function.add_block();
    function.place_block(block);
    return block;
  }
  ValueId load_parameter() {
    ValueId value = builder.new_value(ScalarType::u64);
    std::vector<Operand> operands{Operand::definition(value)};
    append_address(operands, Operand::symbol(SymbolRef::local_variable(parameter)));
    builder.emit("ld.param.u64", operands);
    return value;
  }
  void store(ValueId address, ValueId data) {
    std::vector<Operand> operands;
    append_address(operands, Operand::value(address));
    operands.push_back(Operand::value(data));
    builder.emit("st.global.u32", operands);
  }
  ValueId constant(int64_t number) {
    return builder.emit_value("mov.u32", ScalarType::u32, {Operand::integer(number)});
  }
  size_t size() const {
    size_t count = 0;
    for (BlockId block : function.layout)
      for ([[maybe_unused]] InstructionId id : function.instructions_in(block))
        ++count;
    return count;
  }
};

} // namespace

TEST_CASE("A chain that only feeds itself goes, parameter load included; a store keeps what it reads") {
  Kernel k;
  ValueId address = k.load_parameter();
  ValueId unused = k.load_parameter();
  ValueId data = k.constant(7);
  k.builder.emit_value("add.s64", ScalarType::u64, {Operand::value(unused), Operand::integer(8)});
  k.store(address, data);
  k.builder.emit("ret", {});
  CHECK(ir::remove_dead_code(k.function) == 2);
  CHECK(k.size() == 4);
  CHECK(ir::remove_dead_code(k.function) == 0);
}

TEST_CASE("Side effects, traps, the carry chain and clock reads stay although nobody reads their results") {
  Kernel k;
  ValueId address = k.load_parameter();
  ValueId a = k.constant(1);
  std::vector<Operand> load{Operand::definition(k.builder.new_value(ScalarType::u32))};
  append_address(load, Operand::value(address));
  k.builder.emit("ld.global.u32", load);
  std::vector<Operand> atomic{Operand::definition(k.builder.new_value(ScalarType::u32))};
  append_address(atomic, Operand::value(address));
  atomic.push_back(Operand::value(a));
  k.builder.emit("atom.global.add.u32", atomic);
  k.builder.emit_value("add.cc.u32", ScalarType::u32, {Operand::value(a), Operand::value(a)});
  k.builder.emit_value("addc.u32", ScalarType::u32, {Operand::value(a), Operand::value(a)});
  k.builder.emit_value("mov.u32", ScalarType::u32, {Operand::special(static_cast<uint32_t>(SpecialRegister::clock))});
  k.builder.emit("ret", {});
  CHECK(ir::remove_dead_code(k.function) == 0);
}

TEST_CASE("A guard is a use, and a dead guarded instruction goes with its guard's computation") {
  Kernel k;
  ValueId address = k.load_parameter();
  ValueId a = k.constant(1);
  ValueId kept = k.builder.emit_value("setp.eq.s32", ScalarType::pred, {Operand::value(a), Operand::integer(1)});
  ValueId dead = k.builder.emit_value("setp.eq.s32", ScalarType::pred, {Operand::value(a), Operand::integer(2)});
  k.builder.guarded_by(dead);
  ValueId result = k.builder.new_value(ScalarType::u32);
  Operand old = Operand::value(a);
  old.flags = old.flags | OperandFlag::old_value;
  k.builder.emit("add.u32", {Operand::definition(result), Operand::value(a), Operand::integer(1), old});
  k.builder.guarded_by(kept);
  k.store(address, a);
  k.builder.unguarded().emit("ret", {});
  CHECK(ir::remove_dead_code(k.function) == 2);
  CHECK(k.size() == 5);
}

TEST_CASE("A loop counter that only counts itself dies with its block parameter; a used one stays") {
  Kernel k;
  ValueId address = k.load_parameter();
  ValueId zero = k.constant(0);
  BlockId loop = k.new_block();
  BlockId after = k.new_block();
  ValueId used = k.builder.new_value(ScalarType::u32), idle = k.builder.new_value(ScalarType::u32);
  ValueId parameters[] = {idle, used};
  k.function.set_parameters(loop, parameters);
  k.builder.at_end(loop);
  ValueId next_idle = k.builder.emit_value("add.u32", ScalarType::u32, {Operand::value(idle), Operand::integer(1)});
  ValueId next_used = k.builder.emit_value("add.u32", ScalarType::u32, {Operand::value(used), Operand::integer(1)});
  k.store(address, used);
  ValueId again =
      k.builder.emit_value("setp.lt.u32", ScalarType::pred, {Operand::value(next_used), Operand::integer(9)});
  k.builder.guarded_by(again).emit("bra", {Operand::block(loop)});
  k.builder.unguarded().at_end(after).emit("ret", {});
  ValueId first[] = {zero, zero}, back[] = {next_idle, next_used};
  EdgeId enter[] = {k.function.add_edge(k.entry, loop, first)};
  EdgeId leave[] = {k.function.add_edge(loop, loop, back), k.function.add_edge(loop, after)};
  k.function.set_successors(k.entry, enter, true);
  k.function.set_successors(loop, leave, true);

  CHECK(ir::remove_dead_code(k.function) == 2); // the addition and the block parameter
  REQUIRE(k.function.parameters(loop).size() == 1);
  CHECK(k.function.parameters(loop)[0] == used);
  CHECK(k.function.arguments(leave[0]).size() == 1);
  CHECK(k.function.arguments(leave[0])[0] == next_used);
}

TEST_CASE("The pass reports no change exactly when nothing was removed") {
  const transforms::PassDescription* pass = transforms::find_pass("dce");
  REQUIRE(pass);
  Kernel k;
  k.constant(1);
  k.builder.emit("ret", {});
  transforms::PassContext context;
  CHECK(pass->run(k.function, context) == transforms::Change::changed);
  CHECK(pass->run(k.function, context) == transforms::Change::unchanged);
  CHECK(context.statistics["dce.removed"] == 1);
}

TEST_CASE("what takes an entry from a queue stays, by an operand or by its guard") {
  const auto queue = [](Kernel& k, ScalarType type, RegisterClass which) {
    const ValueId value = k.builder.new_value(type);
    k.function.values[value].register_class = which;
    k.function.values[value].is_undefined = true;
    return value;
  };
  Kernel k;
  const ValueId data = queue(k, ScalarType::u32, RegisterClass::queued_data);
  const ValueId taken = queue(k, ScalarType::pred, RegisterClass::queued_predicate);
  const InstructionId by_operand = k.builder.emit("add.u32", {Operand::definition(k.builder.new_value(ScalarType::u32)),
                                                              Operand::value(data), Operand::integer(1)});
  const InstructionId by_guard =
      k.builder.emit("mov.u32", {Operand::definition(k.builder.new_value(ScalarType::u32)), Operand::integer(1)});
  CHECK_FALSE(removable_when_unused(k.function, by_operand));
  CHECK(removable_when_unused(k.function, by_guard));
  k.function.instructions[by_guard].guard = taken;
  CHECK_FALSE(removable_when_unused(k.function, by_guard));
}

TEST_CASE("readers that nobody needs do not count, nor do arguments of parameters that nobody reads") {
  // for (;;) counter = counter + one: the sum is only passed on to the next trip and never used.
  Kernel k;
  const ValueId zero = k.constant(0), one = k.constant(1);
  const BlockId loop = k.new_block();
  const ValueId counter = k.builder.new_value(ScalarType::u32);
  const ValueId parameters[] = {counter};
  k.function.set_parameters(loop, parameters);
  k.builder.emit("bra.uni", {Operand::block(loop)});
  const ValueId start[] = {zero};
  const EdgeId enter[] = {k.function.add_edge(k.entry, loop, start)};
  k.function.set_successors(k.entry, enter, false);
  k.builder.at_end(loop);
  const ValueId sum = k.builder.emit_value("add.u32", ScalarType::u32, {Operand::value(counter), Operand::value(one)});
  k.builder.emit("bra.uni", {Operand::block(loop)});
  const ValueId next[] = {sum};
  const EdgeId again[] = {k.function.add_edge(loop, loop, next)};
  k.function.set_successors(loop, again, false);

  const ControlFlow flow(k.function);
  const DefUse def_use(k.function);
  const Liveliness::Result live = Liveliness(k.function, flow, def_use.definitions()).compute();
  const ReaderCounts counts(k.function, def_use, live);
  for (const ValueId value : {zero, one, counter, sum})
    CHECK(counts.readers(value) == 0);
}

} // namespace ptxrewrite::tests::dce_test
