// The statistics of measured times: medians, the ratio of two medians, and how sure it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite::evaluate {

// The value below which the fraction `q` of the values lies; between two values on a straight line. No values: 0.
double quantile(std::vector<double> values, double q);
double median(std::vector<double> values);
// Of positive values. No values: 1.
double geometric_mean(std::span<const double> values);

struct ConfidenceInterval {
  double low = 0, high = 0;
};

// The middle part of resampled values that holds the fraction `confidence` of them.
ConfidenceInterval percentile_interval(std::vector<double> resampled, double confidence = 0.95);

// One ratio median(numerators) / median(denominators) for each resample: rounds are drawn with replacement, and the
// two times of a round stay together, because what disturbs a round disturbs both. Both spans have the same size. The
// same seed draws the same rounds.
std::vector<double> resample_ratios(std::span<const double> numerators, std::span<const double> denominators,
                                    size_t resamples, uint64_t seed);

} // namespace ptxrewrite::evaluate
