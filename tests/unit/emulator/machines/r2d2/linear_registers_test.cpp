// R2D2's hardware form on the emulator: the results of a hand-written kernel in that form, and the counts of its
// sections by the paper's rules (r2d2-isca23 section 4).
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::linear_registers_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// out[ctaid * 100 + tid] = 7 * tid + shared value at a linear address
const char* const text = R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 step)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .b64 %cr<4>, %tr<4>, %br<4>, %lr<4>;
  .shared .align 4 .b8 words[512];
  .r2d2.coefficient {
  ld.param.u64 %cr0, [out];
  ld.param.u32 %cr1, [step];
  mul.wide.u32 %cr2, %cr1, 4;
  mov.u32 %cr3, words;
  }
  .r2d2.thread {
  cvt.u64.u32 %tr0, %tid.x;
  mad.lo.s64 %tr1, %tr0, 4, 0;
  mad.lo.s64 %tr2, %tr0, -4, 0;
  }
  .r2d2.block {
  cvt.u64.u32 %br0, %ctaid.x;
  mad.lo.s64 %br1, %br0, %cr2, %cr0;
  mov.b32 %br2, %cr3;
  }
  .r2d2.linear %lr0 = %tr1 + %br1;
  .r2d2.linear %lr1 = %tr2 + %br2;
  .r2d2.linear %lr2 = %tr1 + 0;
  mov.u32 %r1, %tid.x;
  mov.u32 %r0, -8;
  st.shared.u32 [%lr1+%r0+260], %r1;
  ld.shared.u32 %r2, [%lr1+252];
  r2d2.mov.b32 %r3, %lr2, 5;
  add.u32 %r2, %r2, %r3;
  r2d2.mov.b64 %rd1, %lr0, %cr2, 8;
  sub.u64 %rd1, %rd1, 8;
  sub.u64 %rd1, %rd1, %rd2;
  mov.u64 %rd2, -4;
  st.global.u32 [%lr0+%cr2], %r2;
  r2d2.mov.b32 %r3, %lr2, %r0, 8;
  st.global.u32 [%lr0+%rd2+804], %r3;
  ret;
}
)";

} // namespace

TEST_CASE("linear registers, coefficients in addresses, r2d2.mov") {
  // One host thread: a block overwrites what the one before it has stored.
  PtxRun run = run_ptx(text, {.kernel = "k", .grid = {3}, .block = {64}, .host_threads = 1},
                       {zeros<uint32_t>(500), uint32_t(100)});
  REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
  const auto out = run.buffer<uint32_t>(0);
  for (uint32_t block = 0; block < 3; ++block)
    for (uint32_t thread = 0; thread < 64; ++thread)
      CHECK(out[100 + block * 100 + thread] == thread + 4 * thread + 5);
  // A general register instead of the coefficient: block * 100 + 200 + thread, which no block writes later.
  for (uint32_t thread = 0; thread < 64; ++thread)
    CHECK(out[400 + thread] == 4 * thread);
  CHECK(out[99] == 0);
  CHECK(out[364] == 0);
}

TEST_CASE("thread parts of 32 bits are signed") {
  PtxRun run = run_ptx(R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %cr<1>, %tr<2>, %br<1>, %lr<1>;
  .r2d2.coefficient {
  ld.param.u64 %cr0, [out];
  }
  .r2d2.thread {
  mov.u32 %tr0, %tid.x;
  mad.lo.s32 %tr1, %tr0, -4, 0;
  }
  .r2d2.block {
  mov.b64 %br0, %cr0;
  }
  .r2d2.linear %lr0 = %tr1 + %br0;
  mov.u32 %r1, %tid.x;
  st.global.u32 [%lr0+252], %r1;
  ret;
}
)",
                       {.kernel = "k", .grid = {1}, .block = {64}}, {zeros<uint32_t>(64)});
  REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
  for (uint32_t thread = 0; thread < 64; ++thread)
    CHECK(run.buffer<uint32_t>(0)[63 - thread] == thread);
}

TEST_CASE("sections are counted as the machine would execute them") {
  // 300 blocks of 2 warps on 132 SMs.
  PtxRun run = run_ptx(text, {.kernel = "k", .grid = {300}, .block = {40}}, {zeros<uint32_t>(40000), uint32_t(100)});
  REQUIRE_MESSAGE(run.ok(), run.error, run.failure());
  const ir::Function& function = *run.module->functions[0];
  uint64_t coefficient = 0, thread = 0, thread_lanes = 0, block = 0, block_lanes = 0, body = 0;
  int section = -1;
  for (ir::InstructionId id : function.instructions_in(function.entry())) {
    const ir::Instruction& instruction = function.instructions[id];
    if (instruction.kind == ir::InstructionKind::section_begin)
      section = static_cast<int>(function.operands_of(id)[0].immediate);
    if (instruction.kind == ir::InstructionKind::section_end) section = -1;
    if (instruction.kind != ir::InstructionKind::real) continue;
    const InstructionCounters& counted = run.result.counters.functions[0].instructions[id.index()];
    if (section == static_cast<int>(ir::SectionKind::r2d2_coefficient))
      coefficient += counted.executions;
    else if (section == static_cast<int>(ir::SectionKind::r2d2_thread)) {
      thread += counted.executions;
      thread_lanes += counted.lanes;
    } else if (section == static_cast<int>(ir::SectionKind::r2d2_block)) {
      block += counted.executions;
      block_lanes += counted.lanes;
    } else {
      body += counted.executions;
    }
  }
  CHECK(coefficient == 4 * 132); // once per SM
  CHECK(thread == 3 * 132 * 2);  // every warp of the first block on each SM
  CHECK(thread_lanes == 3 * 132 * 40);
  CHECK(block == 3 * 300); // one warp of each block; no two rows share operation and index here
  CHECK(block_lanes == 3 * 300);
  CHECK(body == 14 * 300 * 2);
}

} // namespace ptxrewrite::tests::linear_registers_test
