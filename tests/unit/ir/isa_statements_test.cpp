// The instruction table against ptxas: statements that ptxas accepted or refused, one per line of
// tests/isa/statements.tsv.
#include "tests/isa/statement.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

namespace ptxrewrite::tests::isa_statements_test {

using namespace ptxrewrite::ir;
using ptxrewrite::test::check_statement;
using ptxrewrite::test::Statement;

namespace {

// Only registers can be written, and an instruction that writes nothing has an effect.
void check_definitions(const std::string& text) {
  Statement statement(text);
  const Form& f = form(*resolve_form(statement.mnemonic));
  unsigned count = definition_count(f, statement.operands);
  INFO(text);
  REQUIRE(count <= statement.operands.size());
  for (unsigned i = 0; i < count; ++i) {
    SummaryKind kind = statement.operands[i].kind;
    CHECK((kind == SummaryKind::register_ || kind == SummaryKind::vector || kind == SummaryKind::predicate_pair ||
           kind == SummaryKind::sink || kind == SummaryKind::list));
  }
  if (count == 0) CHECK(f.effects.side_effect);
}

} // namespace

TEST_CASE("the table agrees with ptxas") {
  std::ifstream file(ptxrewrite::tests::source_path("tests/isa/statements.tsv"));
  REQUIRE(file);
  std::string line;
  int accepted = 0;
  int refused = 0;
  while (std::getline(file, line)) {
    if (line.size() < 3 || line[0] == '#') continue;
    std::string statement = line.substr(2);
    std::string answer = check_statement(statement);
    if (line[0] == '+') {
      ++accepted;
      CHECK_MESSAGE(answer.empty(), statement << " : " << answer);
      check_definitions(statement);
    } else {
      ++refused;
      CHECK_MESSAGE(!answer.empty(), statement << " should be refused");
    }
  }
  // A truncated file would test nothing.
  CHECK(accepted > 3000);
  CHECK(refused > 2500);
}

TEST_CASE("wrong operands are named") {
  auto message = [](std::string text) { return check_statement(text); };
  CHECK(message("add.u32 %r1, %r2;") == "'add.u32' takes 3 operands, not 2");
  CHECK(message("add.f32 %f1, 1, %f2;") ==
        "operand 2 of 'add.f32' must be a register for .f32 or a floating-point constant, not the constant 1");
  CHECK(message("add.u32 %r1, %r2, %f3;") ==
        "operand 3 of 'add.u32' must be a register for .u32 or a constant, not a .f32 register");
  CHECK(message("bar.sync 16;") ==
        "operand 1 of 'bar.sync' must be a register for .u32 or a constant in [0..15], not the constant 16");
  CHECK(message("mov.u32 %r1, %clock64;") == "'mov.u32' cannot read %clock64");
  CHECK(message("st.global.v4.u32 [%l1], {%r1, %r2};").find("a vector of 4") != std::string::npos);
  CHECK(message("cp.async.bulk.prefetch.tensor.5d.L2.global [%l2, {%r1, %r2, %r3}];") ==
        "operand 1 of 'cp.async.bulk.prefetch.tensor.5d.L2.global' must be an address with a vector of 5, not an "
        "address in a .b64 register with a vector of 3");

  Statement statement("add.u32 %r1, %r2, %f3;");
  auto wrong = check_operands(form(*resolve_form(statement.mnemonic)), statement.operands);
  REQUIRE(wrong);
  CHECK(wrong->operand_index == 2);
}

TEST_CASE("registers of hardware forms stand for any whole number") {
  OperandSummary operands[3];
  for (auto& operand : operands) {
    operand.kind = SummaryKind::register_;
    operand.type = ScalarType::b32;
  }
  operands[2].type = ScalarType::b64;
  const Form& add = form(*resolve_form("add.u32"));
  CHECK(check_operands(add, operands));
  operands[2].hardware = true;
  CHECK_FALSE(check_operands(add, operands));
  const Form& fadd = form(*resolve_form("add.f64"));
  for (auto& operand : operands)
    operand.type = ScalarType::f64;
  operands[2].type = ScalarType::b32;
  CHECK(check_operands(fadd, operands));
}

TEST_CASE("a .v4 register used whole is a vector") {
  OperandSummary operands[2];
  operands[0].kind = SummaryKind::register_;
  operands[0].type = ScalarType::u32;
  operands[0].vector_width = 4;
  operands[1].kind = SummaryKind::address;
  operands[1].base = AddressBase::register_;
  operands[1].type = ScalarType::u64;
  CHECK_FALSE(check_operands(form(*resolve_form("ld.global.v4.u32")), operands));
  CHECK(check_operands(form(*resolve_form("ld.global.v2.u32")), operands));
  CHECK(check_operands(form(*resolve_form("ld.global.u32")), operands));
}

TEST_CASE("calls say how many operands they write") {
  Statement with("call (cpr), fn1, (cpa);");
  Statement without("call fn2, (cpa);");
  const Form& call = form(*resolve_form("call"));
  CHECK(definition_count(call, with.operands) == 1);
  CHECK(definition_count(call, without.operands) == 0);
}

} // namespace ptxrewrite::tests::isa_statements_test
