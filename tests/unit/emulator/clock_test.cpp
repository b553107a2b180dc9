// Values of %clock, %clock64 and %globaltimer in both units: warp instructions of the block, and reads of clocks.
#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::clock_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

// Stores the clock three times for each thread, the third time behind a branch that the lanes above `above` take.
std::string timed_kernel(std::string_view between) {
  return kernel("k", ".param .u64 out", std::string(R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 24;
  add.s64 %rd1, %rd1, %rd2;
  mov.u64 %rd3, %clock64;
  st.global.u64 [%rd1], %rd3;
)") + std::string(between) + R"(
  mov.u32 %r2, %clock;
  mov.u32 %r3, %clock_hi;
  mov.b64 %rd4, {%r2, %r3};
  st.global.u64 [%rd1+8], %rd4;
  setp.lt.u32 %p, %r1, 20;
  @%p bra LAST;
  mov.u64 %rd5, %globaltimer;
LAST:
  mov.u64 %rd6, %clock64;
  st.global.u64 [%rd1+16], %rd6;
  ret;
)");
}

std::vector<uint64_t> times_of(std::string_view between, ClockUnit unit, uint32_t threads) {
  const PtxRun run = run_ptx(timed_kernel(between), {.kernel = "k", .block = {threads}, .clock_unit = unit},
                             {zeros<uint64_t>(threads * 3)});
  REQUIRE(run.ok());
  return run.buffer<uint64_t>(0);
}

constexpr const char* more_work = "add.u32 %r4, %r1, 1;\n mul.lo.u32 %r5, %r4, %r4;\n add.u32 %r6, %r5, %r4;\n";

} // namespace

TEST_CASE("a clock that counts instructions depends on what else the kernel executes") {
  // A basic block is counted when it is entered.
  CHECK(times_of(more_work, ClockUnit::instructions, 32)[0] == times_of("", ClockUnit::instructions, 32)[0] + 3);
}

TEST_CASE("a clock that counts reads does not depend on other instructions") {
  const std::vector<uint64_t> few = times_of("", ClockUnit::reads, 64);
  CHECK(few == times_of(more_work, ClockUnit::reads, 64));
  for (size_t thread = 0; thread < 64; ++thread) {
    CAPTURE(thread);
    CHECK(few[3 * thread] > 0);
    CHECK(few[3 * thread + 1] > few[3 * thread]);
    CHECK(few[3 * thread + 2] > few[3 * thread + 1]);
    // Every warp starts at the same time.
    CHECK(few[3 * thread] == few[0]);
    // The lanes of the first warp reconverge, and read one value together: the one behind that of the branch.
    CHECK(few[3 * thread + 2] == few[3 * 31 + 2]);
  }
}

TEST_CASE("a loop that waits for a time ends in both units") {
  const std::string text = kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, %clock64;
AGAIN:
  mov.u64 %rd3, %clock64;
  sub.s64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, 100000;
  @%p bra AGAIN;
  st.global.u64 [%rd1], %rd4;
  ret;
)");
  for (const ClockUnit unit : {ClockUnit::instructions, ClockUnit::reads}) {
    const PtxRun run =
        run_ptx(text, {.kernel = "k", .block = {32}, .clock_unit = unit, .fuel = 1'000'000}, {zeros<uint64_t>(1)});
    REQUIRE(run.ok());
    CHECK(run.buffer<uint64_t>(0)[0] >= 100000);
    CHECK(run.buffer<uint64_t>(0)[0] < 100100);
  }
}

TEST_CASE("each block begins with the clock at its start") {
  const PtxRun run =
      run_ptx(kernel("k", ".param .u64 out", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 8;
  add.s64 %rd1, %rd1, %rd2;
  mov.u64 %rd3, %clock64;
  st.global.u64 [%rd1], %rd3;
  ret;
)"),
              {.kernel = "k", .grid = {9}, .block = {32}, .host_threads = 1, .clock_unit = ClockUnit::reads},
              {zeros<uint64_t>(9)});
  REQUIRE(run.ok());
  CHECK(run.buffer<uint64_t>(0) == std::vector<uint64_t>(9, run.buffer<uint64_t>(0)[0]));
}

} // namespace ptxrewrite::tests::clock_test
