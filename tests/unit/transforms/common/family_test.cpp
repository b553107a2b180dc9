// Families: choice of sites, variants and their extension by a second family. The families of this file remove the
// arithmetic of one literal, under a condition of their own.
#include "transforms/common/family.h"

#include "grammar/reader.h"
#include "ir/core/builder.h"
#include "ir/core/print.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <map>

namespace ptxrewrite::tests::family_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;
using namespace ptxrewrite::transforms::legal;

namespace {

// Sites: remainders by the divisors, replaced by the dividend under a predicate, and remainders by 1000, to which work
// is added.
bool replace_remainders(Attempt& attempt, SiteFilter& sites, const std::map<uint64_t, std::string>& predicates) {
  ir::Function& function = attempt.function();
  bool changed = false;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, ir::Opcode::rem)) continue;
      auto operands = function.operands_of(id);
      const auto literal = static_cast<uint64_t>(operands[2].immediate);
      const auto found = predicates.find(literal);
      if (found == predicates.end() && literal != 1000) continue;
      const std::string& predicate = (found == predicates.end() ? predicates.begin() : found)->second;
      if (!predicate.empty() && !attempt.policy().launch) continue;
      if (!sites.take(id, "remainder by " + std::to_string(literal))) continue;
      attempt.rest_on("the dividend is small", "test", predicate, "stated", {});
      ir::Builder builder(function);
      builder.before(id);
      const ir::Operand result = operands[0], dividend = operands[1], by = operands[2];
      if (literal == 1000) {
        ir::ValueId one = builder.new_value(ir::ScalarType::u32, "%r"),
                    two = builder.new_value(ir::ScalarType::u32, "%r");
        builder.emit("div.u32", {ir::Operand::definition(one), dividend, dividend});
        builder.emit("rem.u32", {ir::Operand::definition(two), ir::Operand::value(one), dividend});
        builder.emit("rem.u32", {result, ir::Operand::value(two), by});
      } else {
        builder.emit("mov.u32", {result, dividend});
      }
      function.remove(id);
      changed = true;
    }
  return changed;
}

bool by_seven(Attempt& attempt, SiteFilter& sites, PassContext&) {
  return replace_remainders(attempt, sites, {{7, "P1 < 7"}});
}
bool by_nine(Attempt& attempt, SiteFilter& sites, PassContext&) {
  return replace_remainders(attempt, sites, {{9, "P1 < 9"}});
}

Change seven(ir::Function& function, PassContext& context) {
  return run_family(function, context, {"dce", by_seven});
}
Change nine(ir::Function& function, PassContext& context) {
  return run_family(function, context, {"spill", by_nine});
}

// Remainders by `divisor` become a host-computed parameter of this value.
bool replace_by_parameter(Attempt& attempt, SiteFilter& sites, uint64_t divisor, const std::string& value) {
  ir::Function& function = attempt.function();
  bool changed = false;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (!function.is_opcode(id, ir::Opcode::rem)) continue;
      if (static_cast<uint64_t>(function.operands_of(id)[2].immediate) != divisor) continue;
      if (!attempt.may_add_parameters() || !sites.take(id, "remainder")) continue;
      const ir::VariableId parameter = attempt.launch_parameter(ir::ScalarType::u32, value);
      ir::Builder builder(function);
      builder.before(id);
      std::vector<ir::Operand> operands{function.operands_of(id)[0]};
      ir::append_address(operands, ir::Operand::symbol(ir::SymbolRef::local_variable(parameter)));
      builder.emit("ld.param.u32", operands);
      function.remove(id);
      changed = true;
    }
  return changed;
}
bool three_times(Attempt& attempt, SiteFilter& sites, PassContext&) {
  return replace_by_parameter(attempt, sites, 7, "P1*3");
}
bool five_times(Attempt& attempt, SiteFilter& sites, PassContext&) {
  return replace_by_parameter(attempt, sites, 9, "P1*5");
}
Change first_parameter(ir::Function& function, PassContext& context) {
  return run_family(function, context, {"dce", three_times});
}
Change second_parameter(ir::Function& function, PassContext& context) {
  return run_family(function, context, {"spill", five_times});
}

// Remainders by 7 under a launch condition, remainders by 9 without one.
bool by_seven_or_nine(Attempt& attempt, SiteFilter& sites, PassContext&) {
  return replace_remainders(attempt, sites, {{7, "P1 < 7"}, {9, ""}});
}
Change seven_or_nine(ir::Function& function, PassContext& context) {
  return run_family(function, context, {"dce", by_seven_or_nine});
}

// Families test whether the name of a registered pass follows the kernel's: these use existing names.
PipelineStep step(Change (*run)(ir::Function&, PassContext&), std::string_view name, bool force) {
  PipelineStep one;
  one.pass = family_pass(name, "test", run);
  if (force) one.options.set("force", "");
  one.options.set("cost", "model");
  return one;
}

std::string kernel_text(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
         ".reg .b64 %rd<2>;\n.reg .b32 %r<9>;\nld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n" +
         body + "st.global.u32 [%rd1], %r8;\nret;\n}\n";
}

struct Ran {
  PipelineReport report;
  std::string text;
};

Ran run_steps(const std::string& text, std::vector<PipelineStep> steps) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  Pipeline pipeline;
  pipeline.steps = std::move(steps);
  RunOptions options;
  options.verify_each = true;
  options.run_ptxas = false;
  Result<PipelineReport> report = run_pipeline(*module, pipeline, options);
  REQUIRE_MESSAGE(report, report.error().message);
  Ran ran{*std::move(report), {}};
  ir::print(*module, ran.text);
  return ran;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

} // namespace

TEST_CASE("a family takes every site when forced, and keeps the original beside what it makes") {
  Ran ran = run_steps(kernel_text("rem.u32 %r2, %r1, 7;\nrem.u32 %r8, %r2, 7;\n"), {step(seven, "dce", true)});
  CHECK(count(ran.text, ".entry") == 2);
  CHECK(count(ran.text, "//@ dce original k\n") == 1);
  CHECK(count(ran.text, "//@ dce requires P1 < 7\n") == 1);
  CHECK(count(ran.text, "rem.u32") == 2);
  CHECK(ran.report.statistics.at("dce.sites") == 2);
}

TEST_CASE("a second family adds its requirement to the variant and leaves the original alone") {
  Ran ran = run_steps(kernel_text("rem.u32 %r2, %r1, 7;\nrem.u32 %r8, %r2, 9;\n"),
                      {step(seven, "dce", true), step(nine, "spill", true)});
  CHECK(count(ran.text, ".entry") == 2);
  CHECK(count(ran.text, "//@ dce requires P1 < 7\n") == 1);
  CHECK(count(ran.text, "//@ spill requires P1 < 9\n") == 1);
  CHECK(count(ran.text, "//@ spill original") == 0);
  // The variant has no remainder, the original has both.
  CHECK(count(ran.text, "rem.u32") == 2);
}

TEST_CASE("parameters of a second family are listed behind the first one's, as in the signature") {
  Ran ran = run_steps(kernel_text("rem.u32 %r2, %r1, 7;\nrem.u32 %r3, %r1, 9;\nadd.u32 %r8, %r2, %r3;\n"),
                      {step(first_parameter, "dce", true), step(second_parameter, "spill", true)});
  const size_t first = ran.text.find("//@ dce parameter u32 P1*3\n"),
               second = ran.text.find("//@ spill parameter u32 P1*5\n");
  CHECK(first != std::string::npos);
  CHECK(second != std::string::npos);
  CHECK(first < second);
}

TEST_CASE("sites that cost are left out, those that pay stay") {
  Ran ran = run_steps(kernel_text("rem.u32 %r2, %r1, 1000;\nrem.u32 %r3, %r2, 7;\nrem.u32 %r4, %r3, 7;\n"
                                  "rem.u32 %r8, %r4, 7;\n"),
                      {step(seven, "dce", false)});
  CHECK(count(ran.text, "div.u32") == 0);
  CHECK(count(ran.text, ".entry") == 2);
  // Original: four. Variant: the one by 1000.
  CHECK(count(ran.text, "rem.u32") == 5);
}

TEST_CASE("a family without a site that pays leaves the kernel as it is") {
  const std::string text = kernel_text("rem.u32 %r8, %r1, 1000;\n");
  Ran ran = run_steps(text, {step(seven, "dce", false)});
  CHECK(count(ran.text, ".entry") == 1);
  CHECK(count(ran.text, "div.u32") == 0);
}

// All sites together gain less than 5 %: enough for a kernel in place, too little for a variant. Any half of them has
// sites of both kinds.
TEST_CASE("sites without launch conditions are rewritten in place if the gain is too small for a variant") {
  std::string body = "mov.u32 %r8, %r1;\n";
  for (int i = 0; i < 8; ++i) {
    body += "rem.u32 %r2, %r8, 7;\nrem.u32 %r3, %r8, 9;\nadd.u32 %r8, %r2, %r3;\n";
    for (int other = 0; other < 100; ++other)
      body += "div.u32 %r4, %r8, %r1;\nadd.u32 %r8, %r4, %r2;\n";
  }
  Ran ran = run_steps(kernel_text(body), {step(seven_or_nine, "dce", false)});
  CHECK(count(ran.text, ".entry") == 1);
  CHECK(count(ran.text, ", 9;") == 0);
  CHECK(count(ran.text, ", 7;") == 8);
  CHECK(ran.report.statistics.at("dce.sites") == 8);
}

} // namespace ptxrewrite::tests::family_test
