// Compiled with one more row in ir/isa/opcodes.def (the README's `mulsub`): everything derived from the table supports
// it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "emulator/core/operation.h"
#include "tests/isa/statement.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ptxrewrite::ir;
using ptxrewrite::test::check_statement;

TEST_CASE("the new opcode has an enumerator, a form, effects and operand checks") {
  auto id = resolve_form("mulsub.lo.u32");
  REQUIRE(id.ok());
  const Form& f = form(*id);
  CHECK_FALSE(f.opaque);
  CHECK(f.opcode == Opcode::mulsub);
  CHECK(spelling(f.opcode) == "mulsub");
  CHECK(f.kind == InstructionClass::integer);
  CHECK(f.definitions == 1);
  CHECK(f.effects.pure());
  CHECK(f.type() == ScalarType::u32);
  CHECK(check_statement("mulsub.hi.s32 %r1, %r2, 7, %r3;") == "");
  CHECK(check_statement("mulsub.hi.s32 %r1, %r2, %f1, %r3;") != "");
  CHECK(check_statement("mulsub.lo.u32 %r1, %r2;") != "");
  CHECK(check_statement("mulsub.sat.u32 %r1, %r2, %r3, %r4;") == "illegal modifier '.sat' for 'mulsub'");
}

TEST_CASE("the new opcode has a reference page") {
  CHECK(isa_page("mulsub").find("sm_90+") != std::string::npos);
  auto opcodes = list_opcodes();
  CHECK(std::find(opcodes.begin(), opcodes.end(), "mulsub") != opcodes.end());
}

TEST_CASE("the others are still there") {
  CHECK(check_statement("add.u32 %r1, %r2, %r3;") == "");
}

TEST_CASE("one row teaches the emulator what it does") {
  using namespace ptxrewrite::emulator;
  OperationTable table;
#include PTXREWRITE_ADDED_OPERATION // the README's row, a statement
  const std::array<Operand, 4> operands = {Operand::definition(ValueId(0)), Operand::value(ValueId(1)),
                                           Operand::value(ValueId(2)), Operand::value(ValueId(3))};
  const ptxrewrite::emulator::Operation* operation = table.find(form(*resolve_form("mulsub.lo.u32")), operands);
  REQUIRE(operation);
  CHECK(table.find(form(*resolve_form("mulsub.hi.u32")), operands) == nullptr);
  alignas(64) uint32_t registers[4][warp_size];
  Warp warp;
  warp.base[0] = reinterpret_cast<std::byte*>(registers);
  warp.mask = warp.active = 0x0000ffff; // the upper half is unchanged
  MicroOp op;
  op.destination[0] = LaneRef(LaneBase::registers, 0);
  for (uint32_t source = 0; source < 3; ++source)
    op.source[source] = LaneRef(LaneBase::registers, (source + 1) * sizeof registers[0]);
  for (uint32_t lane = 0; lane < warp_size; ++lane) {
    registers[0][lane] = 1000 + lane;
    registers[1][lane] = lane;
    registers[2][lane] = 0x10000001;
    registers[3][lane] = 7;
  }
  CHECK(operation->handler(warp, op) == &op + 1);
  for (uint32_t lane = 0; lane < warp_size; ++lane)
    CHECK(registers[0][lane] == (lane < 16 ? lane * 0x10000001u - 7 : 1000 + lane));
}
