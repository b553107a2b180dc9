// A pass writes the hardware form, the machine executes it, and the rest of the emulator is independent of both.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "emulator/core/machine.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "ir/core/print.h"
#include "tests/patches/add_machine/census.h"
#include "tests/unit/emulator/run_ptx.h"
#include "transforms/manager/pipeline.h"

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// Odd threads execute one store, and all threads another: of 70 threads 35 and 70.
const std::string plain = kernel("k", ".param .u64 out", R"(
      .reg .pred %p<2>;
      .reg .b32 %r<3>;
      .reg .b64 %rd<4>;
      ld.param.u64 %rd1, [out];
      mov.u32 %r1, %tid.x;
      mul.wide.u32 %rd2, %r1, 4;
      add.s64 %rd3, %rd1, %rd2;
      and.b32 %r2, %r1, 1;
      setp.eq.u32 %p1, %r2, 0;
      @%p1 bra EVEN;
      st.global.u32 [%rd3], 1;
    EVEN:
      st.global.u32 [%rd3], %r1;
      ret;)");

std::string with_marks() {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("k.ptx", plain), diagnostics);
  REQUIRE(module);
  const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline("census");
  REQUIRE(pipeline);
  const auto report = transforms::run_pipeline(*module, *pipeline, {.form = transforms::OutputForm::hardware});
  REQUIRE(report);
  CHECK(report->statistics.at("census.marks") == 2);
  return ir::print(*module);
}

PtxRun run(const std::string& text, MachineData machines) {
  LaunchRequest request{.kernel = "k", .grid = {3}, .block = {70}};
  request.machines = std::move(machines);
  return run_ptx(text, request, {zeros<uint32_t>(70)});
}

} // namespace

TEST_CASE("the machine counts what the pass has marked") {
  const std::string marked = with_marks();
  CHECK(marked.find("//@ census") != std::string::npos);
  const PtxRun counted = run(marked, CensusSettings{});
  INFO(counted.error, counted.failure());
  REQUIRE(counted.ok());
  const auto* counters = counted.result.machines.find<CensusCounters>();
  REQUIRE(counters);
  CHECK(counters->threads == 3 * (35 + 70));
  CHECK(counters->blocks == 3);
  const PtxRun without = run(plain, {});
  CHECK(counted.buffers == without.buffers);
  CHECK(counted.result.counters.warp_instructions == without.result.counters.warp_instructions);
}

TEST_CASE("without marks there is nothing to count, and without the machine nobody counts") {
  CHECK(run(plain, CensusSettings{}).result.machines.get<CensusCounters>().threads == 0);
  const PtxRun uncounted = run(with_marks(), {});
  CHECK(uncounted.ok());
  CHECK_FALSE(uncounted.result.machines.find<CensusCounters>());
}

TEST_CASE("it stands beside the others, and does not run with them") {
  CHECK(find_machine("census"));
  CHECK(find_machine("darsie"));
  const PtxRun both = run(plain, {SkipSettings{}, CensusSettings{}});
  CHECK(both.error == "DARSIE's machine runs without other machines");
}
