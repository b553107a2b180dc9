// A kernel in hardware form runs if the machine has registers for it; otherwise the original runs, and the run reports
// the reason (r2d2-isca23 §4.4).
#include "cuda/session.h"
#include "evaluate/common/rewrite.h"
#include "grammar/reader.h"
#include "ir/machine/registers/registers.h"
#include "launch/launch_file.h"
#include "launch/signature.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::register_budget_session_test {

using namespace ptxrewrite;

namespace {

// out[t] = in[t] + in[2 * t + n] + in[3 * t + 2 * n] ...: all `values` terms are live at the same time. Addresses have
// up to twelve thread parts.
std::string kernel_with(unsigned values) {
  std::string loads, sums;
  for (unsigned i = 0; i < values; ++i)
    loads += "  mul.lo.s32 %i, %n, " + std::to_string(i) + ";\n  mad.lo.s32 %i, %t, " + std::to_string(i % 12 + 1) +
             ", %i;\n  mul.wide.s32 %o, %i, 4;\n  add.s64 %a, %in, %o;\n  ld.global.f32 %f" + std::to_string(i) +
             ", [%a];\n";
  for (unsigned i = 1; i < values; ++i)
    sums += "  add.f32 %f0, %f0, %f" + std::to_string(i) + ";\n";
  return R"(.version 8.7
.target sm_70
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {
  .reg .b64 %in, %out, %o, %a;
  .reg .b32 %t, %b, %d, %i, %n;
  .reg .f32 %f<99>;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mad.lo.s32 %t, %b, %d, %t;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u32 %n, [n];
)" + loads +
         sums + R"(
  mul.wide.s32 %o, %t, 4;
  add.s64 %a, %out, %o;
  st.global.f32 [%a], %f0;
  ret;
}
)";
}

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("k.ptx", text), diagnostics);
  REQUIRE(module);
  return module;
}

launch::LaunchPlan plan_of(unsigned n) {
  Diagnostics diagnostics;
  auto file = launch::read_launch_file(
      SourceFile("k.toml", "ptx = \"k.ptx\"\n[[launch]]\nkernel = \"k\"\ngrid = 2\n"
                           "block = 1024\nargs = [ { buffer = \"in\" }, { buffer = "
                           "\"out\" }, { s32 = 16 } ]\n[buffer.in]\ntype = \"f32\"\n"
                           "count = " +
                               std::to_string(n) +
                               "\ninit = \"iota\"\n[buffer.out]\ntype = \"f32\"\ncount = 2048\n"
                               "output = true\n"),
      diagnostics);
  auto plan = file ? launch::make_plan(*file, {}, diagnostics) : std::nullopt;
  for (const Diagnostic& diagnostic : diagnostics.list())
    MESSAGE(diagnostic.message);
  REQUIRE(plan);
  return std::move(*plan);
}

cuda::SessionRun run(const std::string& text, const ir::Machine* machine) {
  const auto module = read(text);
  Result<launch::Variants> variants = launch::Variants::of(*module, nullptr);
  REQUIRE(variants);
  const launch::LaunchPlan plan = plan_of(32768);
  auto device = cuda::make_emulator_device({.machine = machine});
  cuda::SessionOptions options;
  options.variants = &*variants;
  Result<cuda::SessionResult> result = cuda::run_plan(plan, *module, *device, options);
  REQUIRE_MESSAGE(result, result.error().message);
  REQUIRE_FALSE(result->failed_launch);
  return result->runs.at(0);
}

std::string hardware_form(const std::string& text, std::vector<std::string> assumptions = {}) {
  Result<evaluate::Rewritten> rewritten =
      evaluate::rewrite(*read(text), "r2d2", transforms::OutputForm::hardware, {.assumptions = std::move(assumptions)});
  REQUIRE(rewritten);
  REQUIRE(rewritten->module);
  return rewritten->text;
}

uint32_t registers_of(const std::string& text, const char* kernel) {
  const auto module = read(text);
  return ir::register_need(*launch::find_kernel(*module, kernel), 70).registers;
}

} // namespace

TEST_CASE("registers to spare: the rewritten kernel runs") {
  const ir::Machine* machine = ir::find_machine("titanv");
  const std::string text = hardware_form(kernel_with(8));
  const cuda::SessionRun it = run(text, machine);
  CHECK(it.entry == "k__r2d2");
  CHECK(it.reasons.empty());
  CHECK(it.registers.find("of TITANV") != std::string::npos);
}

TEST_CASE("no registers to spare: the original runs, and the run says why") {
  // The number of values that fills the register file with one block of 1024 threads: 64 registers each.
  const ir::Machine* machine = ir::find_machine("titanv");
  unsigned values = 40;
  std::string text = hardware_form(kernel_with(values));
  while (registers_of(text, "k") < 64)
    text = hardware_form(kernel_with(++values));
  REQUIRE(registers_of(text, "k") == 64);
  // The values themselves stay; one thread-index register of 4 bytes takes a register of each thread.
  REQUIRE(registers_of(text, "k__r2d2") >= values);
  const cuda::SessionRun it = run(text, machine);
  const uint32_t left = 64 - registers_of(text, "k__r2d2");
  CAPTURE(left);
  CHECK(it.entry == "k");
  REQUIRE(it.reasons.size() == 1);
  CAPTURE(it.reasons[0]);
  CHECK(it.reasons[0].starts_with("k__r2d2: not enough registers: "));
  CHECK(it.reasons[0].find(" of " + std::to_string(left * 1024) + " registers left by 1 block per SM of TITANV") !=
        std::string::npos);
  CHECK(it.registers.empty());
  // A machine without limits runs it.
  CHECK(run(text, nullptr).entry == "k__r2d2");
}

} // namespace ptxrewrite::tests::register_budget_session_test
