// Compiled with one more row in ir/opcodes.def (the README's `mulsub`): everything that comes from the table knows it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
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
