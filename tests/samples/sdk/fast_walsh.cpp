// Dyadic convolution by radix-2 Walsh transforms, one stage at a time in order of descending stride. The order of the
// additions is determined by the algorithm for every radix: every bit must agree. A direct sum over the definition
// checks a part of the result.
#include "tests/samples/reference.h"

#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

void transform(std::span<float> signal) {
  for (std::size_t stride = signal.size() / 2; stride > 0; stride /= 2) {
    for (std::size_t i = 0; i < signal.size(); ++i) {
      if ((i & stride) != 0) continue;
      const float first = signal[i];
      const float second = signal[i + stride];
      signal[i] = first + second;
      signal[i + stride] = first - second;
    }
  }
}

} // namespace

REFERENCE(fast_walsh) {
  const auto signal = data.f32("signal");
  const auto kernel = data.f32("kernel");
  const std::vector<float> old_signal(signal.begin(), signal.end());
  const std::vector<float> old_kernel(kernel.begin(), kernel.end());

  transform(signal);
  transform(kernel);
  for (std::size_t i = 0; i < signal.size(); ++i) {
    signal[i] *= kernel[i] * (1.0f / static_cast<float>(signal.size()));
  }
  transform(signal);

  for (std::size_t i = 0; i < 64; ++i) {
    double direct = 0;
    for (std::size_t j = 0; j < signal.size(); ++j) {
      direct += double{old_signal[i ^ j]} * old_kernel[j];
    }
    if (std::abs(direct - signal[i]) > 1e-3 * std::abs(direct)) {
      throw std::logic_error("the reference transforms do not give the dyadic convolution");
    }
  }
}
