// The estimators that the interval model is compared with, by hand computation: Hong and Kim's worked example (ISCA
// 2009, section 3.6: tiled matrix multiplication of 128-thread blocks on an FX5600), all three cases of their formula,
// and kernels whose counts are known.
#include "emulator/timing/estimators.h"
#include "tests/unit/emulator/timing/timed_kernel.h"

#include <cmath>

namespace ptxrewrite::tests::estimators_test {

using namespace ptxrewrite;
using namespace ptxrewrite::timing;

namespace {

// Five blocks of four warps on each of 16 SMs, 27 computations and 6 uncoalesced loads by warp and 6 barriers; clocks:
// 4 by instruction, latency 420, 10 between two of 32 transactions; 80 GB/s at 1 GHz.
MwpCwpInput worked_example() {
  MwpCwpInput in;
  in.warps = 20;
  in.ports = 16;
  in.repetitions = 1;
  in.issue_clocks = 4;
  in.instructions = 27 + 6;
  in.uncoalesced = 6;
  in.transactions = 32;
  in.barriers = 6;
  in.blocks = 5;
  in.latency = 420;
  in.coalesced_departure = 4;
  in.uncoalesced_departure = 10;
  in.bytes = 128;
  in.bandwidth = 80;
  return in;
}

std::string four_loads() {
  return emulator::kernel("k", ".param .u64 from, .param .u64 to", R"(
  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<9>;
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f2;
  ret;
)");
}

} // namespace

TEST_CASE("MWP-CWP: the worked example of its paper") {
  const MwpCwp out = mwp_cwp(worked_example());
  // Latency 420 + 31 x 10 = 730, departure 320.
  CHECK(out.mwp == doctest::Approx(730.0 / 320));
  // (730 x 6 + 132) / 132 = 34.18, but there are 20 warps.
  CHECK(out.cwp == doctest::Approx(20));
  // 4380 x 20 / 2.28 + 132 / 6 x 1.28, and barriers: 320 x 1.28 x 6 x 5. The paper has 38450 + 12288 = 50738.
  CHECK(out.clocks == doctest::Approx(50738).epsilon(0.002));
}

TEST_CASE("MWP-CWP: the three cases") {
  SUBCASE("few warps: both parallelisms end at them") {
    MwpCwpInput in;
    in.warps = 2, in.instructions = 12, in.coalesced = 2, in.issue_clocks = 4, in.latency = 400;
    in.coalesced_departure = 4, in.bytes = 128, in.bandwidth = 1000, in.repetitions = 3;
    const MwpCwp out = mwp_cwp(in);
    CHECK(out.mwp == 2);
    CHECK(out.cwp == 2);
    CHECK(out.clocks == doctest::Approx(3 * (800 + 48 + 48 / 2 * 1)));
  }
  SUBCASE("memory: bandwidth of 16 ports x 128 bytes by 400 clocks") {
    MwpCwpInput in;
    in.warps = 24, in.ports = 16, in.instructions = 12, in.coalesced = 2, in.issue_clocks = 4, in.latency = 400;
    in.coalesced_departure = 4, in.bytes = 128, in.bandwidth = 51.2;
    const MwpCwp out = mwp_cwp(in);
    CHECK(out.mwp == doctest::Approx(51.2 / (128.0 / 400 * 16))); // 10
    CHECK(out.cwp == doctest::Approx(848.0 / 48));
    CHECK(out.clocks == doctest::Approx(800 * 24 / 10.0 + 24 * 9));
  }
  SUBCASE("computation hides memory") {
    MwpCwpInput in;
    in.warps = 24, in.instructions = 400, in.coalesced = 1, in.issue_clocks = 4, in.latency = 2000;
    in.coalesced_departure = 4, in.bytes = 0;
    const MwpCwp out = mwp_cwp(in);
    CHECK(out.mwp == 24);
    CHECK(out.cwp == doctest::Approx(3600.0 / 1600));
    CHECK(out.clocks == doctest::Approx(2000 + 1600 * 24));
  }
  SUBCASE("no memory at all: issue") {
    MwpCwpInput in;
    in.warps = 8, in.instructions = 100, in.issue_clocks = 2, in.repetitions = 5;
    CHECK(mwp_cwp(in).clocks == 8 * 100 * 2 * 5);
  }
}

TEST_CASE("estimators of a kernel whose counts are known") {
  const ir::Machine& on = machine_named("h200");
  constexpr uint32_t blocks = 132 * 8 * 4; // four rounds of full SMs
  const TimedKernel timed =
      time_kernel(four_loads(), {.kernel = "k", .grid = {blocks}, .block = {256}},
                  {emulator::zeros<float>(blocks * 256), emulator::zeros<float>(blocks * 256)}, on);
  const ModelledLaunch launched(timed.run.result.counters, timed.recording, on, 8);
  const ModelInput input = launched.input();
  const Demand demand = demand_of(input);
  const Estimates estimates = estimates_of(input, demand);
  const double launch = on.launch.constant.value;

  // Every warp issues the same instructions, at four per clock and SM.
  const double of_warp = demand.instructions / (blocks * 8.0);
  CHECK(of_warp == std::floor(of_warp));
  CHECK(estimates.instructions == doctest::Approx(launch + of_warp * blocks * 8 / 132 / 4));

  // 4 bytes read, 4 written per thread, at 3890 GB/s and 1980 MHz; L2 and all other resources can do more.
  const double bytes = demand.dram_bytes();
  CHECK(bytes <= blocks * 256 * 8.0 * 1.01);
  const double by_l2 = blocks * 256 * 8.0 / (37 * 132), by_dram = bytes / (3890e3 / 1980);
  CHECK(estimates.roofline == doctest::Approx(launch + std::max(by_l2, by_dram)).epsilon(0.02));

  const MwpCwpInput in = mwp_cwp_input(input, demand);
  CHECK(in.warps == 16);
  CHECK(in.ports == 132 * 4);
  CHECK(in.repetitions == 4);
  CHECK(in.coalesced == doctest::Approx(2));
  CHECK(in.uncoalesced == 0);
  CHECK(in.latency == doctest::Approx(562));                        // no data are loaded twice
  CHECK(in.coalesced_departure == doctest::Approx(128 / 37.0 * 4)); // a line on a quarter of the link
  CHECK(in.instructions == of_warp);
  CHECK(estimates.mwp_cwp == doctest::Approx(launch + mwp_cwp(in).clocks));
}

} // namespace ptxrewrite::tests::estimators_test
