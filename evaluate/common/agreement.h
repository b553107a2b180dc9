// How well estimates agree with measurements: errors and ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// |estimate - measured| / measured of each pair; measured values are positive.
std::vector<double> relative_errors(std::span<const double> measured, std::span<const double> estimated);
// Spearman's rank correlation; equal values share the mean of their ranks. Fewer than two, or no differences: 0.
double spearman(std::span<const double> a, std::span<const double> b);
// Kendall's tau-b, which takes equal values into account. Fewer than two, or no differences: 0.
double kendall_tau(std::span<const double> a, std::span<const double> b);
// How much longer than the fastest of several variants the one takes that the estimates pick: their least, the first
// of equal ones. 0: the fastest is picked. Measured values are positive; no variants: 0.
double regret_of_choice(std::span<const double> measured, std::span<const double> estimated);

// One point of a comparison: what was measured, and what each estimator says.
struct MeasuredPoint {
  std::string suite, name;
  double seconds = 0;
  std::vector<double> estimates; // in seconds, by estimator
};

struct Agreement {
  double mape = 0, p90 = 0; // mean and 90th percentile of relative errors
  double spearman = 0, kendall = 0;
  // With every estimate multiplied by one factor: the geometric mean of measured / estimated over the points of all
  // other suites. Negative: there is but one suite.
  double mape_scaled = -1, p90_scaled = -1;
};
// Of estimator `which`.
Agreement agreement(std::span<const MeasuredPoint> points, size_t which);

} // namespace ptxrewrite::evaluate
