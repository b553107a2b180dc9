// A launch's instructions by the parts of R2D2's hardware form, counted by hand (r2d2-isca23 section 4.1).
#include "emulator/machines/r2d2/section_counts.h"

#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::section_counts_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// 2 instructions for coefficients, 2 for thread parts, 18 + 1 for block parts, 3 in the body.
std::string hardware_kernel() {
  std::string blocks, rows;
  for (int i = 0; i < 18; ++i)
    blocks += "  mad.lo.s64 %br" + std::to_string(i) + ", %br18, " + std::to_string(4 * i + 4) + ", %cr0;\n";
  return R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %cr<4>, %tr<4>, %br<20>, %lr<4>;
  .r2d2.coefficient {
  ld.param.u64 %cr0, [out];
  mov.u32 %cr1, %ntid.x;
  }
  .r2d2.thread {
  cvt.u64.u32 %tr0, %tid.x;
  mad.lo.s64 %tr1, %tr0, 4, 0;
  }
  .r2d2.block {
  cvt.u64.u32 %br18, %ctaid.x;
)" + blocks +
         R"(  }
  .r2d2.linear %lr0 = %tr1 + %br0;
  mov.u32 %r1, 5;
  st.global.u32 [%lr0], %r1;
  ret;
}
)";
}

} // namespace

TEST_CASE("sections are counted apart") {
  // 200 blocks of 70 threads: 3 warps. More blocks than SMs, so that each SM has a first block.
  PtxRun run = run_ptx(hardware_kernel(), {.kernel = "k", .grid = {200}, .block = {70}, .multiprocessors = 80},
                       {zeros<uint32_t>(1000)});
  REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
  const SectionCounts counts = section_counts(run.result.counters);
  CHECK(counts.coefficient.warps == 2 * 80); // once per SM, by one thread
  CHECK(counts.coefficient.threads == 2 * 80);
  CHECK(counts.thread.warps == 2 * 80 * 3); // by all warps of the first block on each SM
  CHECK(counts.thread.threads == 2 * 80 * 70);
  // 18 rows of one operation and index pack into two warp instructions of up to 16 lanes.
  CHECK(counts.block.warps == (1 + 2) * 200);
  CHECK(counts.block.threads == (1 + 18) * 200);
  CHECK(counts.rest.warps == 3 * 200 * 3);
  CHECK(counts.rest.threads == 3 * 200 * 70);
  CHECK(counts.linear().warps == counts.coefficient.warps + counts.thread.warps + counts.block.warps);
  CHECK(counts.total().warps == run.result.counters.warp_instructions);
  CHECK(counts.total().threads == run.result.counters.thread_instructions);
}

TEST_CASE("fewer blocks than SMs: only as many SMs do anything") {
  PtxRun run = run_ptx(hardware_kernel(), {.kernel = "k", .grid = {7}, .block = {32}, .multiprocessors = 80},
                       {zeros<uint32_t>(1000)});
  REQUIRE(run.ok());
  const SectionCounts counts = section_counts(run.result.counters);
  CHECK(counts.coefficient.warps == 2 * 7);
  CHECK(counts.thread.warps == 2 * 7);
  CHECK(counts.block.warps == 3 * 7);
}

TEST_CASE("weights multiply, of each instruction by itself") {
  PtxRun run = run_ptx(hardware_kernel(), {.kernel = "k", .grid = {7}, .block = {64}, .multiprocessors = 80},
                       {zeros<uint32_t>(1000)});
  REQUIRE(run.ok());
  const SectionCounts counts =
      section_counts(run.result.counters, [](const ir::Function& function, ir::InstructionId id) -> uint64_t {
        const std::string_view mnemonic = function.form_of(id).mnemonic;
        if (mnemonic == "mad.lo.s64") return 4;
        return mnemonic.starts_with("mov") ? 0 : 1;
      });
  CHECK(counts.coefficient.warps == 7);
  CHECK(counts.thread.warps == (1 + 4) * 7 * 2);
  CHECK(counts.block.warps == (1 + 2 * 4) * 7);
  CHECK(counts.block.threads == (1 + 18 * 4) * 7);
  CHECK(counts.rest.warps == 2 * 7 * 2);
}

TEST_CASE("a kernel in PTX is all rest") {
  PtxRun run = run_ptx(kernel("k", "", ".reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\nret;"),
                       {.kernel = "k", .grid = {3}, .block = {33}});
  REQUIRE(run.ok());
  const SectionCounts counts = section_counts(run.result.counters);
  CHECK(counts.linear().warps == 0);
  CHECK(counts.rest.warps == 2 * 3 * 2);
  CHECK(counts.rest.threads == 2 * 3 * 33);
}

} // namespace ptxrewrite::tests::section_counts_test
