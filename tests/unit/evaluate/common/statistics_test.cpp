// Statistics of times against independent computations: naive definitions, and for the bootstrap the complete set of
// resamples of a small sample.
#include "evaluate/common/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace ptxrewrite::tests::statistics_test {

using namespace ptxrewrite::evaluate;

namespace {

// The median, by removing the smallest and the largest value until one or two are left.
double middle(std::vector<double> values) {
  while (values.size() > 2) {
    values.erase(std::min_element(values.begin(), values.end()));
    values.erase(std::max_element(values.begin(), values.end()));
  }
  return values.size() == 1 ? values[0] : (values[0] + values[1]) / 2;
}

// The ratios of all n^n ways to draw n rounds from n, all equally likely.
std::vector<double> all_resamples(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  const size_t n = numerators.size();
  std::vector<double> ratios;
  std::vector<size_t> drawn(n, 0);
  for (;;) {
    std::vector<double> top, bottom;
    for (size_t round : drawn) {
      top.push_back(numerators[round]);
      bottom.push_back(denominators[round]);
    }
    ratios.push_back(middle(top) / middle(bottom));
    size_t digit = 0;
    while (digit < n && ++drawn[digit] == n)
      drawn[digit++] = 0;
    if (digit == n) return ratios;
  }
}

double fraction_at_most(const std::vector<double>& values, double limit) {
  return static_cast<double>(
             std::ranges::count_if(values, [&](double value) { return value <= limit * (1 + 1e-12); })) /
         static_cast<double>(values.size());
}
double fraction_below(const std::vector<double>& values, double limit) {
  return static_cast<double>(std::ranges::count_if(values, [&](double value) { return value < limit * (1 - 1e-12); })) /
         static_cast<double>(values.size());
}

} // namespace

TEST_CASE("medians equal what is left when extremes are taken away") {
  std::mt19937 random(5);
  for (size_t size = 1; size < 40; ++size) {
    std::vector<double> values;
    for (size_t i = 0; i < size; ++i)
      values.push_back(static_cast<double>(random() % 50));
    CHECK(median(values) == middle(values));
  }
  CHECK(median({}) == 0);
}

TEST_CASE("quantiles lie on straight lines between values") {
  // numpy.percentile([15, 20, 35, 40, 50], [0, 5, 30, 40, 50, 100])
  const std::vector<double> values = {50, 15, 40, 20, 35};
  CHECK(quantile(values, 0) == 15);
  CHECK(quantile(values, 0.05) == doctest::Approx(16));
  CHECK(quantile(values, 0.30) == doctest::Approx(23));
  CHECK(quantile(values, 0.40) == doctest::Approx(29));
  CHECK(quantile(values, 0.50) == 35);
  CHECK(quantile(values, 1) == 50);
}

TEST_CASE("the geometric mean is the n-th root of the product") {
  CHECK(geometric_mean(std::vector<double>{2, 8}) == doctest::Approx(4));
  CHECK(geometric_mean(std::vector<double>{1.1, 0.9, 1.3, 2}) == doctest::Approx(std::pow(1.1 * 0.9 * 1.3 * 2, 0.25)));
  CHECK(geometric_mean({}) == 1);
}

TEST_CASE("the bootstrap's interval is that of all resamples there are") {
  const std::vector<double> original = {10.0, 11.5, 9.7, 10.4, 13.0}, rewritten = {8.1, 8.4, 7.9, 9.2, 8.8};
  const std::vector<double> exact = all_resamples(original, rewritten);
  REQUIRE(exact.size() == 3125);
  const std::vector<double> drawn = resample_ratios(original, rewritten, 20000, 1);
  REQUIRE(drawn.size() == 20000);
  // Each ratio has the expected frequency: four standard deviations of 20,000 draws are below 0.015.
  for (double limit : exact)
    REQUIRE(std::fabs(fraction_at_most(drawn, limit) - fraction_at_most(exact, limit)) < 0.015);
  const ConfidenceInterval interval = percentile_interval(drawn);
  CHECK(fraction_below(exact, interval.low) <= 0.035);
  CHECK(fraction_at_most(exact, interval.low) >= 0.015);
  CHECK(fraction_below(exact, interval.high) <= 0.985);
  CHECK(fraction_at_most(exact, interval.high) >= 0.965);
}

TEST_CASE("the times of a round stay together") {
  // A slow clock in half of the rounds: each round's ratio is 2, and so is that of every resample.
  const std::vector<double> original = {2, 20, 2, 20, 2}, rewritten = {1, 10, 1, 10, 1};
  for (double ratio : resample_ratios(original, rewritten, 500, 7))
    REQUIRE(ratio == 2);
}

TEST_CASE("the interval covers the true ratio about as often as it says") {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> noise(0, 0.05);
  int covered = 0;
  constexpr int experiments = 200;
  for (int i = 0; i < experiments; ++i) {
    std::vector<double> original, rewritten;
    for (int round = 0; round < 25; ++round) {
      original.push_back(1.2 * noise(random));
      rewritten.push_back(noise(random));
    }
    const ConfidenceInterval interval = percentile_interval(resample_ratios(original, rewritten, 400, uint64_t(i)));
    covered += interval.low <= 1.2 && 1.2 <= interval.high;
  }
  CHECK(covered >= 178); // 95 % are 190; three standard deviations of 200 experiments are 9
}

TEST_CASE("the same seed draws the same rounds") {
  const std::vector<double> original = {1, 2, 3, 4}, rewritten = {4, 3, 2, 1.5};
  CHECK(resample_ratios(original, rewritten, 50, 3) == resample_ratios(original, rewritten, 50, 3));
  CHECK(resample_ratios(original, rewritten, 50, 3) != resample_ratios(original, rewritten, 50, 4));
}

} // namespace ptxrewrite::tests::statistics_test
