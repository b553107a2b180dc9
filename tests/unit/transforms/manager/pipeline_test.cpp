// The pass manager: order, counts and checks of passes. The passes of this file make small visible changes.
#include "transforms/manager/pipeline.h"

#include "grammar/reader.h"
#include "ir/core/print.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::pipeline_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;

namespace {

constexpr const char* two_kernels = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func other;
.visible .entry alpha(.param .u64 p)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    nanosleep.u32 1;
    st.global.u32 [%rd1], 1;
    ret;
}
.visible .entry beta()
{
    nanosleep.u32 2;
    bar.sync 0;
    ret;
}
)";

size_t remove_sleeps_from(ir::Function& function) {
  size_t removed = 0;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId instruction : function.instructions_in(block))
      if (function.is_opcode(instruction, ir::Opcode::nanosleep)) {
        function.remove(instruction);
        ++removed;
      }
  return removed;
}

Change remove_sleeps(ir::Function& function, PassContext& context) {
  size_t removed = remove_sleeps_from(function);
  context.statistics["test.removed"] += static_cast<int64_t>(removed);
  if (removed && context.options.flag("talk")) context.remarks.push_back("removed a sleep");
  context.ledger.push_back({"", "nobody needs rest", "test-wake", Discharge::assumed, "", {}});
  return removed ? Change::changed : Change::unchanged;
}

Change lie(ir::Function& function, PassContext&) {
  remove_sleeps_from(function);
  return Change::unchanged;
}

// As the passes that write a variant do.
Change remove_sleeps_beside(ir::Function& function, PassContext& context) {
  auto original = std::make_unique<ir::Function>(function);
  function.name = function.module().intern("copy_of_" + std::string(function.module().text(function.name)));
  remove_sleeps_from(function);
  context.additions.push_back(std::move(original));
  return Change::changed;
}

// Edits that do not invalidate the function's version: of its head, and of an operand of an addition.
Change drop_directives(ir::Function& function, PassContext&) {
  function.directives.clear();
  return Change::changed;
}

Change sleep_longer_beside(ir::Function& function, PassContext& context) {
  const Change change = remove_sleeps_beside(function, context);
  ir::Function& original = *context.additions.back();
  for (ir::BlockId block : original.layout)
    for (ir::InstructionId id : original.instructions_in(block))
      if (original.is_opcode(id, ir::Opcode::nanosleep)) original.operands_of(id)[0] = ir::Operand::integer(7);
  return change;
}

Change only_look(ir::Function& function, PassContext& context) {
  context.statistics["test.in-ssa-form"] += function.is_ssa;
  context.statistics["test.hardware"] += context.form == OutputForm::hardware;
  context.statistics["test.assumed"] += context.assumes("rest");
  return Change::unchanged;
}

Change add_twin(ir::Function& function, PassContext& context) {
  ir::Module& module = function.module();
  auto twin = std::make_unique<ir::Function>(module);
  twin->name = module.intern(std::string(module.text(function.name)) + "_twin");
  twin->is_entry = twin->has_body = twin->is_ssa = true;
  twin->linkage = ir::Linkage::visible;
  twin->signature.has_parameter_list = true;
  ir::BlockId block = twin->add_block();
  twin->place_block(block);
  for (std::string_view mnemonic : {"nanosleep.u32", "ret"}) {
    ir::Instruction instruction;
    instruction.form = ir::known_form(mnemonic);
    ir::Operand duration = ir::Operand::integer(3);
    twin->append(block, twin->add_instruction(instruction, std::span(&duration, mnemonic == "ret" ? 0 : 1)));
  }
  context.additions.push_back(std::move(twin));
  return Change::unchanged;
}

const RegisterPass twin({"test-twin", "adds a function", add_twin});
const RegisterPass wake({"test-wake", "removes sleeps", remove_sleeps, {{"talk", "", PassOptionKind::flag}}});
const RegisterPass liar({"test-lie", "removes sleeps and denies it", lie});
const RegisterPass beside({"test-beside", "removes sleeps in a copy", remove_sleeps_beside});
const RegisterPass bare({"test-bare", "drops directives", drop_directives});
const RegisterPass longer({"test-longer", "changes the original beside a copy", sleep_longer_beside});
const RegisterPass look({"test-look", "changes nothing", only_look});

struct Fixture {
  std::unique_ptr<ir::Module> module;

  Fixture() {
    Diagnostics diagnostics;
    module = grammar::read_module(SourceFile("two.ptx", two_kernels), diagnostics);
    REQUIRE(module);
  }
  Result<PipelineReport> run(std::string_view passes, const RunOptions& options = {}) {
    Result<Pipeline> pipeline = parse_pipeline(passes);
    REQUIRE(pipeline.ok());
    return run_pipeline(*module, *pipeline, options);
  }
  size_t sleeps() const {
    std::string text = ir::print(*module);
    size_t count = 0;
    for (size_t at = text.find("nanosleep"); at != std::string::npos; at = text.find("nanosleep", at + 1))
      ++count;
    return count;
  }
};

} // namespace

TEST_CASE_FIXTURE(Fixture, "no passes: every body goes into SSA form and out of it") {
  auto report = run("", {.verify_each = true});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  CHECK(report->functions == std::vector<std::string>{"alpha", "beta"});
  CHECK(report->executions == 0);
  CHECK(report->remarks.empty());
  for (const auto& function : module->functions)
    CHECK_FALSE(function->is_ssa);
  CHECK(sleeps() == 2);
}

// In SSA form, unused registers lose their declarations.
TEST_CASE("functions that no pass changes are kept as they were read, and so are originals beside variants") {
  const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n\n";
  const auto kernel = [](const std::string& name, const std::string& body) {
    return ".visible .entry " + name + "()\n.maxntid 32\n{\n" + body + "}\n\n";
  };
  const std::string declared = "\t.reg .b32 %r<9>;\n\t.reg .pred %p<3>;\n";
  const std::string asleep = declared + "\tnanosleep.u32 \t2;\n\tret;\n", awake = "\tret;\n";
  const auto result = [&](const char* passes) {
    Diagnostics diagnostics;
    std::unique_ptr<ir::Module> module = grammar::read_module(
        SourceFile("two.ptx", head + kernel("a", asleep) + kernel("b", declared + awake)), diagnostics);
    REQUIRE(module);
    const Result<Pipeline> pipeline = parse_pipeline(passes);
    REQUIRE(pipeline.ok());
    REQUIRE(run_pipeline(*module, *pipeline, {.verify_each = true}).ok());
    return ir::print(*module);
  };
  CHECK(result("test-look") == head + kernel("a", asleep) + kernel("b", declared + awake));
  CHECK(result("test-wake") == head + kernel("a", awake) + kernel("b", declared + awake));
  CHECK(result("test-bare").find(".maxntid") == std::string::npos);
  CHECK(result("test-longer").find("nanosleep.u32 \t7;") != std::string::npos);
  // Additions that are no variants stand before the function.
  CHECK(result("test-beside,test-look") == head + kernel("a", asleep) + kernel("copy_of_a", awake) +
                                               kernel("b", declared + awake) + kernel("copy_of_b", awake));
}

TEST_CASE_FIXTURE(Fixture, "passes see SSA form, the output form and the assumptions") {
  auto report = run("test-look", {.form = OutputForm::hardware, .assumptions = {"rest"}, .verify_each = true});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  CHECK(report->statistics["test.in-ssa-form"] == 2);
  CHECK(report->statistics["test.hardware"] == 2);
  CHECK(report->statistics["test.assumed"] == 2);
}

TEST_CASE_FIXTURE(Fixture, "statistics add up, remarks and times name pass and function") {
  auto report = run("test-look,test-wake(talk),test-wake");
  REQUIRE(report.ok());
  CHECK(sleeps() == 0);
  CHECK(report->statistics["test.removed"] == 2);
  CHECK(report->executions == 6);
  CHECK(report->ledger.size() == 4);
  REQUIRE(report->remarks.size() == 2);
  CHECK(report->remarks[1].pass == "test-wake");
  CHECK(report->remarks[1].function == "beta");
  REQUIRE(report->times.size() == 4);
  CHECK(report->times[0].stage == "construct-ssa");
  CHECK(report->times[2].stage == "test-wake");
  CHECK(report->times[2].runs == 4);
  CHECK(report->times[2].changes == 2);
}

TEST_CASE_FIXTURE(Fixture, "a glob selects functions; the others stay as they were") {
  auto report = run("test-wake", {.functions = "b*"});
  REQUIRE(report.ok());
  CHECK(report->functions == std::vector<std::string>{"beta"});
  CHECK(sleeps() == 1);
  CHECK(matches_glob("bp_*", "bp_adjust_weights"));
  CHECK(matches_glob("k[12]?", "k1x"));
  CHECK_FALSE(matches_glob("k[12]?", "k3x"));
  CHECK_FALSE(matches_glob("bp", "bp_adjust_weights"));
}

TEST_CASE_FIXTURE(Fixture, "stop_after counts executions over all functions") {
  auto report = run("test-look,test-wake", {.stop_after = 3});
  REQUIRE(report.ok());
  CHECK(report->executions == 3);
  CHECK(sleeps() == 1); // alpha ran both, beta only read the result
}

TEST_CASE_FIXTURE(Fixture, "a pass that denies its change is found out") {
  REQUIRE(run("test-lie").ok()); // not looked at
  Fixture fresh;
  auto report = fresh.run("test-lie", {.verify_each = true});
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message.find("test-lie") != std::string::npos);
  CHECK(report.error().message.find("alpha") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "prints before, after and on change") {
  std::string log;
  RunOptions options;
  options.print = [&](std::string_view text) { log += text.substr(0, text.find('\n') + 1); };
  options.print_before.names = {"test-wake"};
  options.print_after.names = {"destruct-ssa"};
  REQUIRE(run("test-look,test-wake", options).ok());
  CHECK(log == "// ---- before test-wake in alpha ----\n// ---- after destruct-ssa in alpha ----\n"
               "// ---- before test-wake in beta ----\n// ---- after destruct-ssa in beta ----\n");
  log.clear();
  Fixture fresh;
  RunOptions changes;
  changes.print = options.print;
  changes.print_changed = true;
  REQUIRE(fresh.run("test-look,test-wake,test-wake", changes).ok());
  CHECK(log.find("test-look") == std::string::npos);
  CHECK(log.find("// ---- after test-wake in beta ----") == log.rfind("// ---- after test-wake in beta ----"));
  CHECK(log.find("// ---- after test-wake in beta ----") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "functions that a pass adds go through the passes behind it and stand before their origin") {
  auto report = run("test-twin,test-wake", {.functions = "beta", .verify_each = true});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  std::string text = ir::print(*module);
  CHECK(sleeps() == 1); // alpha's own
  size_t alpha = text.find("alpha("), added = text.find("beta_twin("), beta = text.find("beta(");
  REQUIRE(added != std::string::npos);
  CHECK(alpha < added);
  CHECK(added < beta);
  Diagnostics diagnostics;
  CHECK(grammar::read_module(SourceFile("again.ptx", text), diagnostics));
}

TEST_CASE("functions that the module names are referenced: by a call, by an address in an instruction or a table") {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("names.ptx", R"(.version 8.0
.target sm_80
.address_size 64
.func called() { ret; }
.func pointed() { ret; }
.func in_table() { ret; }
.func alone() { ret; }
.global .u64 table[1] = { in_table };
.visible .entry k()
{
    .reg .b64 %rd<2>;
    call called;
    mov.u64 %rd1, pointed;
    ret;
}
)"),
                                     diagnostics);
  REQUIRE(module);
  PassContext context;
  std::string referenced;
  for (const auto& function : module->functions)
    if (context.is_referenced(*function)) referenced += std::string(module->text(function->name)) + " ";
  CHECK(referenced == "called pointed in_table ");

  // One search serves all contexts of a module: a search for each kernel would make a pass quadratic in their number.
  const ir::Function* in_table = nullptr;
  for (const auto& function : module->functions)
    if (module->text(function->name) == "in_table") in_table = function.get();
  REQUIRE(in_table);
  for (const ir::VariableId id : module->variables.ids())
    module->variables[id].initialiser = {};
  CHECK(context.beside().is_referenced(*in_table));
  CHECK_FALSE(PassContext().is_referenced(*in_table));
}

} // namespace ptxrewrite::tests::pipeline_test
