#include "evaluate/common/statistics.h"

#include "support/mix.h"

#include <algorithm>
#include <cmath>

namespace ptxrewrite::evaluate {
namespace {

// SplitMix64: gives the same numbers on every machine, unlike the standard library's distributions.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Uses the high half of a product: the bias of the range is far below the resolution of the resampling.
  size_t below(size_t limit) {
    return static_cast<size_t>((static_cast<unsigned __int128>(next()) * static_cast<uint64_t>(limit)) >> 64);
  }

private:
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    return mixed_bits(state_);
  }
  uint64_t state_;
};

} // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return 1;
  double sum = 0;
  for (double value : values)
    sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

ConfidenceInterval percentile_interval(std::vector<double> resampled, double confidence) {
  std::ranges::sort(resampled);
  return {quantile(resampled, (1 - confidence) / 2), quantile(resampled, (1 + confidence) / 2)};
}

std::vector<double> resample_ratios(std::span<const double> numerators, std::span<const double> denominators,
                                    size_t resamples, uint64_t seed) {
  const size_t rounds = std::min(numerators.size(), denominators.size());
  std::vector<double> ratios;
  if (rounds == 0) return ratios;
  Random random(seed);
  std::vector<double> drawn_numerators(rounds), drawn_denominators(rounds);
  for (size_t i = 0; i < resamples; ++i) {
    for (size_t k = 0; k < rounds; ++k) {
      const size_t round = random.below(rounds);
      drawn_numerators[k] = numerators[round];
      drawn_denominators[k] = denominators[round];
    }
    ratios.push_back(median(drawn_numerators) / median(drawn_denominators));
  }
  return ratios;
}

} // namespace ptxrewrite::evaluate
