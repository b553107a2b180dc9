// Bounds by hand computation, with Student's t from its table; counts by multiplication.
#include "emulator/timing/block_sample.h"

#include <doctest/doctest.h>

#include <cmath>

namespace ptxrewrite::tests::block_sample_test {

using timing::BlockSample;

TEST_CASE("how far a mean over sampled blocks may be off") {
  BlockSample sample;
  for (double value : {2, 4, 4, 4, 5, 5, 7, 9})
    sample.add(value);
  CHECK(sample.mean() == doctest::Approx(5));
  // s = sqrt(32 / 7); t = 2.365 for 7 degrees of freedom; 56 of 64 blocks did not run.
  const double expected = 2.365 * std::sqrt(32.0 / 7) / (5 * std::sqrt(8.0)) * std::sqrt(56.0 / 63);
  CHECK(sample.bound(64) == doctest::Approx(expected).epsilon(0.03));
  CHECK(sample.bound(64) < sample.bound(1 << 20));
  CHECK(sample.bound(8) == 0);
}

TEST_CASE("blocks that are all alike, and one that stands for many") {
  BlockSample alike;
  for (int i = 0; i < 20; ++i)
    alike.add(1e9);
  CHECK(alike.bound(1000) == 0);
  BlockSample one;
  one.add(3);
  CHECK(std::isinf(one.bound(2)));
  CHECK(one.bound(1) == 0);
}

TEST_CASE("counts of the blocks that ran stand for all") {
  emulator::Counters some;
  some.functions.push_back({"kernel", nullptr, {{.executions = 6, .lanes = 190, .guarded_off = 3}}});
  some.warp_instructions = 6, some.blocks = 3, some.warps = 6;
  const emulator::Counters all = timing::counts_of_all(some, 3, 10);
  CHECK(all.functions[0].instructions[0].executions == 20);
  CHECK(all.functions[0].instructions[0].lanes == 633);
  CHECK(all.functions[0].instructions[0].guarded_off == 10);
  CHECK(all.blocks == 10);
  CHECK(all.warps == 20);
}

} // namespace ptxrewrite::tests::block_sample_test
