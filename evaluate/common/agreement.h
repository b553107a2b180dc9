// Agreement of estimates with measurements: errors and rank correlations.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// |estimate - measured| / measured for each pair; measured values must be positive.
std::vector<double> relative_errors(std::span<const double> measured, std::span<const double> estimated);
// Spearman's rank correlation; equal values share the mean of their ranks. 0 for fewer than two values, or if all are
// equal.
double spearman(std::span<const double> a, std::span<const double> b);
// Kendall's tau-b, which accounts for equal values. 0 for fewer than two values, or if all are equal.
double kendall_tau(std::span<const double> a, std::span<const double> b);
// The relative excess of the chosen variant's measured time over that of the fastest; the estimates choose the one with
// the smallest estimate, the first on a tie. 0 if the fastest is chosen, or without variants. Measured values must be
// positive.
double regret_of_choice(std::span<const double> measured, std::span<const double> estimated);

// One point of a comparison: the measured value, and the value of each estimator.
struct MeasuredPoint {
  std::string suite, name;
  double seconds = 0;
  std::vector<double> estimates; // in seconds, by estimator
};

struct Agreement {
  double mape = 0, p90 = 0; // mean and 90th percentile of relative errors
  double spearman = 0, kendall = 0;
  // The same after multiplying every estimate by one factor: the geometric mean of measured / estimated over the points
  // of all other suites. Negative if there is only one suite.
  double mape_scaled = -1, p90_scaled = -1;
};
// The agreement of estimator `which`.
Agreement agreement(std::span<const MeasuredPoint> points, size_t which);

} // namespace ptxrewrite::evaluate
