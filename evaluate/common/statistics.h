// Statistics of measured times: medians, the ratio of two medians, and its confidence interval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite::evaluate {

// The value below which the fraction `q` of the values lies, with linear interpolation. 0 without values.
double quantile(std::vector<double> values, double q);
double median(std::vector<double> values);
// All values must be positive. 1 without values.
double geometric_mean(std::span<const double> values);

struct ConfidenceInterval {
  double low = 0, high = 0;
};

// The central interval that contains the fraction `confidence` of the resampled values.
ConfidenceInterval percentile_interval(std::vector<double> resampled, double confidence = 0.95);

// Returns one ratio median(numerators) / median(denominators) for each resample. Rounds are drawn with replacement; the
// two times of a round stay together, because a disturbance affects both. Both spans must have the same size. The same
// seed draws the same rounds.
std::vector<double> resample_ratios(std::span<const double> numerators, std::span<const double> denominators,
                                    size_t resamples, uint64_t seed);

} // namespace ptxrewrite::evaluate
