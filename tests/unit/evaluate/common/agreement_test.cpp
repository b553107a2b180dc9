// Errors and rank correlations by hand computation.
#include "evaluate/common/agreement.h"

#include <doctest/doctest.h>

#include <cmath>

namespace ptxrewrite::tests::agreement_test {

using namespace ptxrewrite::evaluate;

TEST_CASE("Spearman's correlation") {
  const double a[] = {1, 2, 3, 4, 5};
  const double same[] = {10, 20, 30, 400, 5000}, contrary[] = {5, 4, 3, 2, 1};
  CHECK(spearman(a, same) == doctest::Approx(1));
  CHECK(spearman(a, contrary) == doctest::Approx(-1));
  // 1 - 6 sum d^2 / (n (n^2 - 1)), d = 0, 1, -1, 1, -1: 1 - 24 / 120.
  const double swapped[] = {1, 3, 2, 5, 4};
  CHECK(spearman(a, swapped) == doctest::Approx(0.8));
  // Ties: ranks 1.5, 1.5, 3 against 1, 2, 3: 1.5 / sqrt(1.5 x 2).
  const double three[] = {1, 2, 3}, tied[] = {7, 7, 9};
  CHECK(spearman(three, tied) == doctest::Approx(1.5 / std::sqrt(3.0)));
  const double flat[] = {7, 7, 7};
  CHECK(spearman(three, flat) == 0);
}

TEST_CASE("Kendall's tau") {
  const double a[] = {1, 2, 3, 4}, b[] = {1, 2, 4, 3}, contrary[] = {4, 3, 2, 1};
  CHECK(kendall_tau(a, a) == doctest::Approx(1));
  CHECK(kendall_tau(a, contrary) == doctest::Approx(-1));
  CHECK(kendall_tau(a, b) == doctest::Approx((5.0 - 1) / 6));
  // One pair of a tied in b: two of three pairs, over sqrt(3 x 2).
  const double three[] = {1, 2, 3}, tied[] = {7, 7, 9};
  CHECK(kendall_tau(three, tied) == doctest::Approx(2 / std::sqrt(6.0)));
}

TEST_CASE("the regret of a choice") {
  const double measured[] = {4, 2, 3}, right[] = {40, 10, 30}, wrong[] = {40, 10, 5}, tied[] = {7, 7, 9};
  CHECK(regret_of_choice(measured, right) == 0);
  CHECK(regret_of_choice(measured, wrong) == doctest::Approx(0.5)); // 3 instead of 2
  CHECK(regret_of_choice(measured, tied) == doctest::Approx(1));    // the first: 4 instead of 2
  CHECK(regret_of_choice({}, {}) == 0);
}

TEST_CASE("errors, and factors from the suites left out") {
  // Estimator 0 is 10 % too high in suite a, right in b; estimator 1 is half everywhere.
  std::vector<MeasuredPoint> points = {{"a", "k1", 10, {11, 5}}, {"a", "k2", 20, {22, 10}}, {"b", "k3", 40, {40, 20}}};
  const Agreement first = agreement(points, 0);
  CHECK(first.mape == doctest::Approx(0.2 / 3));
  CHECK(first.p90 == doctest::Approx(0.1));
  CHECK(first.spearman == doctest::Approx(1));
  CHECK(first.kendall == doctest::Approx(1));
  // The factor of a's points is b's, 1; of b's point a's, 1 / 1.1.
  CHECK(first.mape_scaled == doctest::Approx((0.1 + 0.1 + (1 - 1 / 1.1)) / 3));
  const Agreement second = agreement(points, 1);
  CHECK(second.mape == doctest::Approx(0.5));
  CHECK(second.mape_scaled == doctest::Approx(0));
  points.pop_back();
  CHECK(agreement(points, 1).mape_scaled < 0);
}

} // namespace ptxrewrite::tests::agreement_test
