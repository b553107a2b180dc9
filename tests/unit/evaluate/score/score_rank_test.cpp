// The expected cost of picking a variant: against the closed form for two variants, and against draws of many.
#include "evaluate/score/score_rank.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace ptxrewrite::tests::score_rank_test {

using ptxrewrite::evaluate::pick_statistics;
using ptxrewrite::evaluate::PickStatistics;

namespace {

double below(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

} // namespace

TEST_CASE("of two variants: the difference of two normal errors") {
  const double error = 0.3;
  for (double ratio : {1.0, 1.1, 1.5, 4.0}) {
    CAPTURE(ratio);
    const std::vector<PickStatistics> picks = pick_statistics(std::vector{1.0, ratio}, error);
    // ln(first / second) has mean m and standard deviation d; E[max(1, exp(D))] - 1 is that of an option.
    const double m = -std::log(ratio), d = error * std::sqrt(2.0);
    CHECK(picks[0].chance == doctest::Approx(below(-m / d)).epsilon(1e-4));
    CHECK(picks[1].chance == doctest::Approx(below(m / d)).epsilon(1e-4));
    CHECK(picks[0].regret ==
          doctest::Approx(std::exp(m + d * d / 2) * below((m + d * d) / d) + below(-m / d) - 1).epsilon(1e-3));
    CHECK(picks[1].regret ==
          doctest::Approx(std::exp(-m + d * d / 2) * below((-m + d * d) / d) + below(m / d) - 1).epsilon(1e-3));
  }
}

TEST_CASE("of several variants: as drawn") {
  const std::vector<double> times = {3, 3.2, 4, 4.1, 9, 30};
  const double error = 0.25;
  const std::vector<PickStatistics> picks = pick_statistics(times, error);
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, error);
  constexpr int draws = 200000;
  std::vector<double> chance(times.size()), regret(times.size());
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> drawn;
    for (double time : times)
      drawn.push_back(time * std::exp(normal(random)));
    const auto least = std::min_element(drawn.begin(), drawn.end());
    chance[static_cast<size_t>(least - drawn.begin())] += 1.0 / draws;
    for (size_t i = 0; i < times.size(); ++i)
      regret[i] += (drawn[i] / *least - 1) / draws;
  }
  double sum = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(picks[i].chance - chance[i]) < 0.005);
    CHECK(picks[i].regret == doctest::Approx(regret[i]).epsilon(0.02));
    sum += picks[i].chance;
  }
  CHECK(sum == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("one variant is the fastest, and equal ones have equal chances") {
  const std::vector<PickStatistics> one = pick_statistics(std::vector{5.0}, 0.3);
  CHECK(one[0].chance == doctest::Approx(1).epsilon(1e-4));
  CHECK(one[0].regret == doctest::Approx(0));
  CHECK(pick_statistics({}, 0.3).empty());
  for (const PickStatistics& pick : pick_statistics(std::vector{2.0, 2.0, 2.0, 2.0}, 0.3))
    CHECK(pick.chance == doctest::Approx(0.25).epsilon(1e-4));
}

} // namespace ptxrewrite::tests::score_rank_test
