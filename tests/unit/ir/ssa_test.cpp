// SSA construction and destruction: behaviour equals that of the original under an interpreter, and unchanged code is
// restored exactly.
#include "ir/ssa/ssa.h"

#include "ir/verify/verify.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/random_functions.h"
#include "tests/unit/ir/small_interpreter.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace ptxrewrite::tests::ssa_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

std::string findings(const Function& function) {
  std::string text;
  for (const VerifierFinding& finding : verify(function))
    text += "[" + finding.rule + "] " + finding.message + "\n";
  return text;
}

std::string text_of(const Function& function) {
  std::string text;
  print(function, text);
  return text;
}

size_t count(const Function& function, Opcode opcode) {
  size_t result = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      result += function.is_opcode(id, opcode);
  return result;
}

size_t count_all(const Function& function) {
  size_t result = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      result += function.instructions[id].kind == InstructionKind::real;
  return result;
}

// Whether `other` equals `original` wherever the original is determined.
bool same(const Trace& original, const Trace& other) {
  for (size_t i = 0; i < original.stores.size(); ++i) {
    if (i >= other.stores.size()) return false;
    if (original.stores[i] && original.stores[i] != other.stores[i]) return false;
  }
  return original.undetermined || original.stores.size() == other.stores.size();
}

// Replaces results of unguarded moves by their sources everywhere, so that values from one register are live at the
// same time: a transform may do this, and leaving SSA form has to repair it.
void propagate_copies(Function& function) {
  std::vector<ValueId> replacement;
  for (ValueId value : function.values.ids())
    replacement.push_back(value);
  auto resolve = [&](ValueId value) {
    while (replacement[value.index()] != value)
      value = replacement[value.index()];
    return value;
  };
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      std::span<const Operand> operands = function.operands_of(id);
      if (!function.is_opcode(id, Opcode::mov) || function.instructions[id].guard || operands.size() != 2) continue;
      if (!operands[1].is(OperandKind::value)) continue;
      if (function.values[operands[0].as_value()].type != function.values[operands[1].as_value()].type) continue;
      replacement[operands[0].id] = operands[1].as_value();
      function.remove(id);
    }
  for (BlockId block : function.layout) {
    for (InstructionId id : function.instructions_in(block)) {
      for (Operand& operand : function.operands_of(id))
        if (operand.is(OperandKind::value) && !operand.is_definition())
          operand.id = resolve(operand.as_value()).index();
      ValueId& guard = function.instructions[id].guard;
      if (guard) guard = resolve(guard);
    }
    for (EdgeId edge : function.successors(block))
      for (ValueId& argument : function.arguments(edge))
        argument = resolve(argument);
  }
  function.changed();
}

} // namespace

TEST_CASE("random functions behave the same in SSA form, behind it, and behind it with copies propagated") {
  unsigned runs = 0, copies = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    std::string text = RandomKernel(seed).text();
    ReadText original(text), plain(text), propagated(text);
    REQUIRE_MESSAGE(original.ok(), original.messages() << text);
    REQUIRE(findings(original.function()) == "");
    std::vector<Trace> expected;
    for (unsigned thread : {0u, 5u})
      expected.push_back(SmallInterpreter(original.function(), thread).run());

    auto check = [&](const Function& function) {
      INFO(text_of(function));
      REQUIRE(findings(function) == "");
      for (unsigned thread : {0u, 1u})
        REQUIRE(same(expected[thread], SmallInterpreter(function, thread ? 5 : 0).run()));
      ++runs;
    };
    REQUIRE(construct_ssa(plain.function()).ok());
    check(plain.function());
    size_t instructions = count_all(plain.function());
    destruct_ssa(plain.function());
    check(plain.function());
    // Nothing was changed in between, so nothing was added.
    CHECK(count_all(plain.function()) == instructions);

    REQUIRE(construct_ssa(propagated.function()).ok());
    propagate_copies(propagated.function());
    check(propagated.function());
    size_t before = count(propagated.function(), Opcode::mov);
    destruct_ssa(propagated.function());
    check(propagated.function());
    copies += count(propagated.function(), Opcode::mov) > before;
    // The printed text is valid PTX.
    ReadText again(print(*propagated.module));
    REQUIRE_MESSAGE(again.ok(), again.messages());
    check(again.function());
  }
  CHECK(runs == 3000 * 5);
  CHECK(copies > 300); // the generator does make copies necessary
}

TEST_CASE("a register written in both arms of a branch becomes one block parameter, a dead one none") {
  ReadText text(kernel("mov.u32 %r1, 1; mov.u32 %r4, 1;\n"
                       "@%p1 bra A;\nmov.u32 %r1, 2; mov.u32 %r4, 2;\nA:\nst.global.u32 [%rd1], %r1;\n"));
  REQUIRE(text.ok());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  size_t parameters = 0;
  for (BlockId block : function.layout)
    parameters += function.parameters(block).size();
  CHECK(parameters == 1); // pruned: %r4 is not live after A
  CHECK(function.values[function.parameters(function.layout[2])[0]].type == ScalarType::b32);
}

TEST_CASE("a loop keeps what it does not change without a parameter") {
  ReadText text(kernel("mov.u32 %r1, 0; mov.u32 %r2, 7;\nL:\nadd.u32 %r1, %r1, %r2;\nsetp.lt.u32 %p1, %r1, 100;\n"
                       "@%p1 bra L;\nst.global.u32 [%rd1], %r1;\n"));
  REQUIRE(text.ok());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  size_t parameters = 0;
  for (BlockId block : function.layout)
    parameters += function.parameters(block).size();
  CHECK(parameters == 1); // %r1
}

TEST_CASE("guarded definitions carry their old value, undefined where nothing was written before") {
  ReadText text(kernel("mov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;\n@%p1 mov.u32 %r2, 3;\n"
                       "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1], %r2;\n"));
  REQUIRE(text.ok());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  std::vector<InstructionId> guarded;
  for (InstructionId id : function.instructions_in(function.entry()))
    if (function.instructions[id].guard) guarded.push_back(id);
  REQUIRE(guarded.size() == 2);
  REQUIRE(function.operands_of(guarded[0]).size() == 3);
  CHECK(function.operands_of(guarded[0])[2].has(OperandFlag::old_value));
  CHECK(!function.values[function.operands_of(guarded[0])[2].as_value()].is_undefined);
  CHECK(function.values[function.operands_of(guarded[1])[2].as_value()].is_undefined);
  destruct_ssa(function);
  CHECK(count_all(function) == 6);
  CHECK(function.operands_of(guarded[0])[0].id != function.operands_of(guarded[1])[0].id);
}

TEST_CASE("what has no SSA reading is refused and left alone") {
  ReadText text(kernel("frobnicate.b32 %r1, %r2;\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  std::string before = text_of(text.function());
  Status status = construct_ssa(text.function());
  REQUIRE(!status.ok());
  CHECK(status.error().message.find("frobnicate.b32") != std::string::npos);
  CHECK(!text.function().is_ssa);
  CHECK(text_of(text.function()) == before);
}

TEST_CASE("a call that passes a vector register is left alone: ptxas takes no braces there") {
  ReadText text(kernel(".reg .v2 .b32 v; call (v), f, (v);\n",
                       ".func (.reg .v2 .b32 y) f(.reg .v2 .b32 x) { mov.v2.b32 y, x; ret; }\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  for (const auto& function : text.module->functions) {
    std::string before = text_of(*function);
    CHECK(!construct_ssa(*function).ok());
    CHECK(text_of(*function) == before);
  }
}

TEST_CASE("the parameters of calls in scopes stay apart when the scopes go") {
  ReadText text(kernel("{\n.param .b32 a0;\nst.param.b32 [a0], %r1;\ncall.uni f, (a0);\n}\n"
                       "{\n.param .b32 a0;\nst.param.b32 [a0], %r2;\ncall.uni f, (a0);\n}\n",
                       ".extern .func f(.param .b32 x);\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  REQUIRE(construct_ssa(text.function()).ok());
  CHECK(findings(text.function()) == "");
  destruct_ssa(text.function());
  CHECK(findings(text.function()) == "");
  ReadText again(print(*text.module));
  CHECK_MESSAGE(again.ok(), again.messages());
}

TEST_CASE("registers of one name in two scopes, or with the name of a label, have two names when the scopes go") {
  for (const std::string hidden : {"%r5", "L7"}) {
    ReadText text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<6>; .reg .b64 "
                  "%rd<2>;\nbra L7;\nL7:\nmov.u32 %r5, %tid.x;\n{\n.reg .b32 " +
                  hidden + ";\nmov.u32 " + hidden + ", %ctaid.x;\nst.global.u32 [%rd1], " + hidden +
                  ";\n}\nst.global.u32 [%rd1+4], %r5;\nret;\n}\n");
    REQUIRE_MESSAGE(text.ok(), text.messages());
    Function& function = text.function();
    REQUIRE(construct_ssa(function).ok());
    std::vector<std::string> names;
    for (BlockId block : function.layout) {
      names.push_back(function.block_name(block));
      for (InstructionId id : function.instructions_in(block))
        for_each_definition(function, id, [&](ValueId value) { names.push_back(function.value_name(value)); });
    }
    std::ranges::sort(names);
    CHECK(std::ranges::adjacent_find(names) == names.end());
  }
}

TEST_CASE("vector registers become one value per component") {
  ReadText text(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .v4 .u32 V; .reg .b32 %r<2>; "
      ".reg .b64 %rd<2>;\nld.global.v4.u32 V, [%rd1];\nadd.u32 V.y, V.x, V.w;\nst.global.v4.u32 [%rd1], V;\nret;\n}\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  CHECK(findings(function) == "");
  std::vector<InstructionId> ids;
  for (InstructionId id : function.instructions_in(function.entry()))
    ids.push_back(id);
  REQUIRE(ids.size() == 4);
  std::span<const Operand> load = function.operands_of(ids[0]), add = function.operands_of(ids[1]),
                           store = function.operands_of(ids[2]);
  REQUIRE(load[0].is(OperandKind::vector));
  CHECK(add[1].id == load[1].id); // x
  CHECK(add[2].id == load[4].id); // w
  REQUIRE(store[2].is(OperandKind::vector));
  CHECK(store[3].id == load[1].id);
  CHECK(store[4].id == add[0].id); // y was written again
  destruct_ssa(function);
  ReadText again(print(*text.module));
  CHECK_MESSAGE(again.ok(), again.messages());
}

TEST_CASE("the swap of two registers in a loop costs one temporary and three moves") {
  ReadText text(kernel("mov.u32 %r1, 1; mov.u32 %r2, 2;\nL:\nmov.u32 %r3, %r1; mov.u32 %r1, %r2; mov.u32 %r2, %r3;\n"
                       "setp.lt.u32 %p1, %r1, 100;\n@%p1 bra L;\nst.global.u32 [%rd1], %r1;\n"));
  REQUIRE(text.ok());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  propagate_copies(function);
  CHECK(count(function, Opcode::mov) == 2);
  destruct_ssa(function);
  CHECK(findings(function) == "");
  CHECK(count(function, Opcode::mov) == 2 + 3);
}

TEST_CASE("unreachable code goes, its labels stay when debug sections may name them") {
  std::string body = "bra A;\nmov.u32 %r1, 1;\nD:\nmov.u32 %r1, 2;\nA:\n";
  ReadText plain(kernel(body)), debug(kernel(body, ".section .debug_str\n{\n.b8 0\n}\n"));
  REQUIRE_MESSAGE(debug.ok(), debug.messages());
  for (ReadText* text : {&plain, &debug}) {
    REQUIRE(construct_ssa(text->function()).ok());
    CHECK(findings(text->function()) == "");
    CHECK(count(text->function(), Opcode::mov) == 0);
    destruct_ssa(text->function());
    CHECK(findings(text->function()) == "");
  }
  CHECK(text_of(plain.function()).find("D:") == std::string::npos);
  CHECK(text_of(debug.function()).find("D:") != std::string::npos);
}

TEST_CASE("two results of one instruction never share a register, used or not") {
  ReadText text(kernel("ld.global.v2.u32 {%r1, %r1}, [%rd1];\nst.global.u32 [%rd1], %r1;\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Function& function = text.function();
  REQUIRE(construct_ssa(function).ok());
  destruct_ssa(function);
  CHECK(findings(function) == "");
  InstructionId load = function.terminator(function.entry());
  while (load && !function.is_opcode(load, Opcode::ld))
    load = function.instructions[load].previous;
  REQUIRE(load.valid());
  std::span<const Operand> operands = function.operands_of(load);
  CHECK(operands[1].id != operands[2].id);
  InstructionId store = function.instructions[load].next;
  CHECK(function.operands_of(store).back().id == operands[2].id); // the later one counts
}

} // namespace ptxrewrite::tests::ssa_test
