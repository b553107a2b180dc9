// Each rule of the verifier is broken once, in an otherwise valid function.
#include "ir/verify/verify.h"

#include "ir/core/builder.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

namespace ptxrewrite::tests::verify_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Blocks: 0 entry, 1 L (a loop with one parameter), 2 after it.
const char* const body = "mov.u32 %r1, 0;\n@%p1 mov.u32 %r2, 1;\nL:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 9;\n"
                         "@%p2 bra L;\nst.global.u32 [%rd1], %r1;\n";

std::vector<VerifierFinding> findings_after(bool ssa, const std::function<void(Function&)>& damage) {
  ReadText text(kernel(body));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  Function& function = text.function();
  REQUIRE(verify(function).empty());
  if (ssa) {
    REQUIRE(construct_ssa(function).ok());
    REQUIRE(verify(function).empty());
    REQUIRE(function.parameters(function.layout[1]).size() == 1);
  }
  damage(function);
  return verify(function);
}

// Checks that this rule, and no other, is reported.
void expect(std::string_view rule, bool ssa, const std::function<void(Function&)>& damage) {
  CAPTURE(rule);
  std::vector<VerifierFinding> findings = findings_after(ssa, damage);
  REQUIRE(!findings.empty());
  for (const VerifierFinding& finding : findings) {
    INFO(finding.message);
    CHECK(finding.rule == rule);
    CHECK(!finding.message.empty());
  }
}

InstructionId nth(const Function& function, unsigned block, unsigned index) {
  for (InstructionId id : function.instructions_in(function.layout[block])) {
    if (function.instructions[id].kind != InstructionKind::real) continue;
    if (index-- == 0) return id;
  }
  return {};
}

} // namespace

TEST_CASE("layout: blocks are there once and marked") {
  expect("layout", false, [](Function& f) { f.layout.push_back(f.layout[1]); });
  expect("layout", false, [](Function& f) { f.blocks[f.layout[1]].in_layout = false; });
  expect("layout", false, [](Function& f) { f.blocks[f.add_block()].in_layout = true; });
  expect("layout", false, [](Function& f) {
    f.layout.clear();
    for (Block& block : f.blocks)
      block.in_layout = false;
    for (Instruction& row : f.instructions)
      row.block = {};
  });
}

TEST_CASE("links: instructions form one list") {
  expect("links", false, [](Function& f) { f.instructions[nth(f, 1, 1)].previous = {}; });
  expect("links", false, [](Function& f) { f.blocks[f.layout[1]].last = nth(f, 1, 0); });
  expect("links", false, [](Function& f) { f.instructions[nth(f, 1, 1)].block = f.layout[0]; });
  expect("links", false, [](Function& f) { f.instructions[nth(f, 1, 2)].next = nth(f, 1, 0); });
}

TEST_CASE("handles: everything refers to something") {
  expect("handles", false, [](Function& f) { f.operands_of(nth(f, 1, 0))[0].id = 10000; });
  expect("handles", false, [](Function& f) { f.instructions[nth(f, 1, 2)].guard = ValueId(10000); });
  expect("handles", false, [](Function& f) { f.operands_of(nth(f, 2, 0))[0].id = 5; });
  expect("handles", false, [](Function& f) { f.instructions[nth(f, 1, 0)].operands.offset = 100000; });
  expect("handles", true, [](Function& f) { f.arguments(f.successors(f.layout[0])[0])[0] = ValueId(10000); });
}

TEST_CASE("operands: they fit the form") {
  expect("operands", false, [](Function& f) { f.instructions[nth(f, 1, 0)].operands.count = 2; });
  expect("operands", false,
         [](Function& f) { f.operands_of(nth(f, 1, 0))[1] = Operand::value(f.instructions[nth(f, 1, 2)].guard); });
  expect("operands", false, [](Function& f) { f.operands_of(nth(f, 1, 0))[0].flags = OperandFlag::none; });
  expect("operands", false, [](Function& f) { f.operands_of(nth(f, 1, 0))[1].flags = OperandFlag::definition; });
}

TEST_CASE("guard: it is a predicate") {
  expect("guard", false,
         [](Function& f) { f.instructions[nth(f, 1, 2)].guard = f.operands_of(nth(f, 1, 0))[0].as_value(); });
}

TEST_CASE("terminator: nothing follows it") {
  expect("terminator", false, [](Function& f) { Builder(f).after(nth(f, 1, 2)).emit("membar.cta", {}); });
}

TEST_CASE("target: branches stay in the layout") {
  expect("target", false, [](Function& f) {
    BlockId outside = f.add_block();
    f.operands_of(nth(f, 1, 2))[0] = Operand::block(outside);
    f.edges[f.successors(f.layout[1])[0]].to = outside;
  });
}

TEST_CASE("edges: they are what the end of the block says") {
  expect("edges", false, [](Function& f) { f.blocks[f.layout[1]].falls_through = false; });
  expect("edges", false, [](Function& f) { f.edges[f.successors(f.layout[1])[0]].to = f.layout[2]; });
  expect("edges", false, [](Function& f) {
    EdgeId edge = f.successors(f.layout[1])[0];
    f.set_successors(f.layout[1], {&edge, 1}, true);
  });
  expect("edges", false, [](Function& f) { f.instructions[nth(f, 1, 2)].guard = {}; });
  expect("edges", false, [](Function& f) { f.edges[f.successors(f.layout[1])[0]].from = f.layout[0]; });
}

TEST_CASE("scopes: braces are balanced") {
  expect("scopes", false,
         [](Function& f) { Builder(f).before(nth(f, 1, 0)).emit_marker(InstructionKind::scope_begin, {}); });
  expect("scopes", false,
         [](Function& f) { Builder(f).before(nth(f, 1, 0)).emit_marker(InstructionKind::scope_end, {}); });
  expect("scopes", false, [](Function& f) {
    Builder(f).before(nth(f, 1, 0)).emit_marker(InstructionKind::section_begin, {Operand::integer(0)});
  });
}

TEST_CASE("declarations and names: once each") {
  auto declare = [](Function& f, VariableId id) {
    Builder(f)
        .before(nth(f, 0, 0))
        .emit_marker(InstructionKind::declare_variable, {Operand::symbol(SymbolRef::local_variable(id))});
  };
  expect("declarations", true, [&](Function& f) { declare(f, f.variable_lists.view(f.signature.parameters)[0]); });
  expect("names", true, [&](Function& f) {
    Variable variable;
    variable.name = f.blocks[f.layout[1]].label;
    declare(f, f.variables.add(variable));
  });
  expect("names", false, [](Function& f) { f.blocks[f.layout[2]].label = f.blocks[f.layout[1]].label; });
  expect("names", false, [](Function& f) {
    Value& other = f.values[f.operands_of(nth(f, 0, 1))[0].as_value()];
    const Value& value = f.values[f.operands_of(nth(f, 0, 0))[0].as_value()];
    other.name = value.name;
    other.number = value.number;
  });
}

TEST_CASE("provenance: of a source instruction") {
  expect("provenance", false,
         [](Function& f) { f.instructions[nth(f, 1, 0)].provenance = ProvenanceId(f.source_instruction_count); });
}

TEST_CASE("not-ssa: nothing of SSA form outside of it") {
  expect("not-ssa", false, [](Function& f) {
    ValueId value = f.operands_of(nth(f, 1, 0))[0].as_value();
    f.set_parameters(f.layout[1], {&value, 1});
  });
  expect("not-ssa", false,
         [](Function& f) { f.values[f.operands_of(nth(f, 1, 0))[0].as_value()].is_undefined = true; });
  expect("not-ssa", true, [](Function& f) {
    f.is_ssa = false;
    f.values[f.operands_of(nth(f, 0, 0))[0].as_value()].number = 77;
    for (Value& value : f.values)
      value.number = static_cast<uint32_t>(&value - &*f.values.begin());
  });
}

TEST_CASE("ssa-scopes, ssa-entry") {
  expect("ssa-scopes", true, [](Function& f) {
    Operand text;
    text.kind = OperandKind::text;
    text.id = f.module().intern(".reg .b32 x").index();
    Builder(f).before(nth(f, 0, 0)).emit_marker(InstructionKind::declare_values, {text});
  });
  expect("ssa-entry", true, [](Function& f) {
    ValueId value = f.operands_of(nth(f, 0, 0))[0].as_value();
    Value row = f.values[value];
    ValueId fresh = f.add_value(row);
    f.set_parameters(f.entry(), {&fresh, 1});
  });
}

TEST_CASE("ssa-single: one definition") {
  expect("ssa-single", true, [](Function& f) {
    Builder(f).before(nth(f, 1, 0)).emit("mov.u32", {f.operands_of(nth(f, 0, 0))[0], Operand::integer(3)});
  });
  expect("ssa-single", true, [](Function& f) {
    Value row = f.values[f.operands_of(nth(f, 0, 0))[0].as_value()];
    f.operands_of(nth(f, 1, 0))[1] = Operand::value(f.add_value(row));
  });
  expect("ssa-single", true,
         [](Function& f) { f.values[f.operands_of(nth(f, 0, 0))[0].as_value()].is_undefined = true; });
}

TEST_CASE("ssa-dominance: definitions come first on every path") {
  expect("ssa-dominance", true, [](Function& f) { // in one block
    f.operands_of(nth(f, 1, 0))[1] = Operand::value(f.operands_of(nth(f, 1, 0))[0].as_value());
  });
  expect("ssa-dominance", true, [](Function& f) { // from a later block
    ValueId fresh = Builder(f).before(nth(f, 2, 0)).emit_value("mov.u32", ScalarType::b32, {Operand::integer(1)});
    f.operands_of(nth(f, 1, 0))[1] = Operand::value(fresh);
  });
  expect("ssa-dominance", true, [](Function& f) { // on an edge
    f.arguments(f.successors(f.layout[0])[0])[0] = f.operands_of(nth(f, 1, 0))[0].as_value();
  });
}

TEST_CASE("ssa-arguments: they fit the parameters") {
  expect("ssa-arguments", true, [](Function& f) { f.set_arguments(f.successors(f.layout[0])[0], {}); });
  expect("ssa-arguments", true, [](Function& f) {
    ValueId fresh = Builder(f).before(nth(f, 0, 0)).emit_value("mov.u64", ScalarType::b64, {Operand::integer(1)});
    f.arguments(f.successors(f.layout[0])[0])[0] = fresh;
  });
}

TEST_CASE("ssa-old-value: one per register that a guarded instruction writes") {
  expect("ssa-old-value", true, [](Function& f) { --f.instructions[nth(f, 0, 1)].operands.count; });
  expect("ssa-old-value", true, [](Function& f) {
    std::span<const Operand> operands = f.operands_of(nth(f, 0, 0));
    std::vector<Operand> list(operands.begin(), operands.end());
    list.push_back(f.operands_of(nth(f, 0, 1)).back()); // the instruction has no guard
    f.set_operands(nth(f, 0, 0), list);
  });
  expect("ssa-old-value", true, [](Function& f) {
    ValueId fresh = Builder(f).before(nth(f, 0, 0)).emit_value("mov.u64", ScalarType::b64, {Operand::integer(1)});
    f.operands_of(nth(f, 0, 2)).back().id = fresh.index(); // the move before it is new
  });
}

TEST_CASE("a sound function of any shape has no findings") {
  ReadText text(kernel("@%p1 ret;\n{\n.reg .b32 x;\nmov.u32 x, %tid.x;\n}\nbra M;\nM:\nN:\nT: .branchtargets M, N, "
                       "M;\nbrx.idx %r1, T;\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  CHECK(verify(*text.module).empty());
  REQUIRE(construct_ssa(text.function()).ok());
  CHECK(verify(*text.module).empty());
  destruct_ssa(text.function());
  CHECK(verify(*text.module).empty());
}

} // namespace ptxrewrite::tests::verify_test
