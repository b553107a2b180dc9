// The formulas of interval analysis for inputs with known results.
#include "emulator/timing/interval.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

namespace ptxrewrite::tests::interval_test {

using namespace ptxrewrite::timing;

TEST_CASE("a smooth sum is its largest term alone, and never less") {
  CHECK(smooth_sum(std::array{7.0}) == doctest::Approx(7));
  CHECK(smooth_sum(std::array{7.0, 0.0, 0.0}) == doctest::Approx(7));
  CHECK(smooth_sum(std::array{1.0, 1.0}) == doctest::Approx(std::cbrt(2.0)));
  CHECK(smooth_sum(std::array{3.0, 4.0, 5.0}) == doctest::Approx(6)); // 27 + 64 + 125 = 216
  CHECK(smooth_sum(std::array<double, 0>{}) == 0);
  CHECK(smooth_sum(std::array{1e200, 1e200}) == doctest::Approx(1e200 * std::cbrt(2.0)));
}

TEST_CASE("what is beyond a part gives the whole together with it") {
  for (double part : {0.0, 1.0, 10.0, 1000.0})
    for (double more : {0.0, 0.5, 3.0, 5000.0})
      CHECK(smooth_sum(std::array{part, beyond(part + more, part)}) == doctest::Approx(part + more));
  CHECK(beyond(2, 3) == 0);
  CHECK(beyond(3, 3) == 0);
  CHECK(beyond(0, 0) == 0);
  CHECK(beyond(5, 4, 2) == doctest::Approx(3)); // 9 + 16 = 25
}

TEST_CASE("other warps hide stalls") {
  const Company alone{.warps = 1, .issue_probability = 0.5, .mean_issued = 4};
  const Company eight{.warps = 8, .issue_probability = 0.5, .mean_issued = 4};
  for (Policy policy : {Policy::greedy_then_oldest, Policy::round_robin}) {
    CHECK(hidden_instructions(policy, 100, alone) == 0);
    CHECK(others_issue_clocks(policy, 4, 1, alone) == 0);
  }
  // Greedy: in a long wait each of the others issues an interval; round robin: one instruction, if it can.
  CHECK(hidden_instructions(Policy::greedy_then_oldest, 100, eight) == doctest::Approx(7 * 4));
  CHECK(hidden_instructions(Policy::greedy_then_oldest, 1, eight) == doctest::Approx(7 * 4 * 0.5));
  CHECK(hidden_instructions(Policy::round_robin, 100, eight) == doctest::Approx(7 * 0.5));
  CHECK(others_issue_clocks(Policy::greedy_then_oldest, 9, 0.5, eight) == doctest::Approx(7 * 4 / 0.5));
  CHECK(others_issue_clocks(Policy::round_robin, 9, 0.5, eight) == doctest::Approx(7 * 9 / 0.5));
  CHECK(exposed_stall(100, 28, 1) == doctest::Approx(72));
  CHECK(exposed_stall(100, 28, 0.25) == doctest::Approx(0));
  CHECK(exposed_stall(20, 28, 1) == 0);
  CHECK(issue_probability(1, 3) == doctest::Approx(0.25));
  CHECK(issue_probability(0, 0) == 1);
}

TEST_CASE("bandwidth follows Little's law when little is in flight, and saturates") {
  // Bandwidth saturates smoothly (power 3) if waits and demand are summed up in this way.
  constexpr double bytes = 1e6, latency = 500, peak = 2000;
  for (double in_flight : {1e3, 1e5, 1e6, 1e7, 1e9}) {
    const double achieved = std::pow(std::pow(in_flight / latency, -3) + std::pow(peak, -3), -1.0 / 3);
    CHECK(smooth_sum(std::array{bytes * latency / in_flight, bytes / peak}) == doctest::Approx(bytes / achieved));
  }
}

TEST_CASE("misses beyond the registers for them come in batches; blocks are distributed one after the other") {
  CHECK(further_batches(256, 256) == 0);
  CHECK(further_batches(257, 256) == 1);
  CHECK(further_batches(2048, 256) == 7);
  CHECK(further_batches(0, 256) == 0);
  CHECK(launch_clocks(1000, 2, 300) == doctest::Approx(2300));
}

} // namespace ptxrewrite::tests::interval_test
