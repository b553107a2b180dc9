// One step of a particle filter: move, weight, normalise, resample at evenly spaced marks of the cumulated weights.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cstdlib>
#include <numbers>
#include <numeric>

namespace {

// The next number of a linear congruential generator in 32-bit arithmetic that wraps around, as a fraction.
double uniform(int32_t& seed) {
  constexpr uint32_t multiplier = 1103515245, increment = 12345;
  constexpr int32_t modulus = 2147483647;
  seed = static_cast<int32_t>(multiplier * static_cast<uint32_t>(seed) + increment) % modulus;
  return std::abs(static_cast<double>(seed) / modulus);
}

double normal(int32_t& seed) {
  const double u = uniform(seed);
  const double v = uniform(seed);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// The log likelihood ratio of the pixels for the object (228) and for the background (100).
double log_likelihood(ptxrewrite::tests::SampleData& data, double x, double y) {
  const int64_t height = data.value("height"), frames = data.value("frames"), frame = 1;
  auto film = data.u8("film");
  auto disk = data.s32("disk");
  double sum = 0;
  for (size_t k = 0; k < disk.size(); k += 2) {
    const int64_t pixel_x = std::lrint(x) + disk[k], pixel_y = std::lrint(y) + disk[k + 1];
    const size_t pixel = std::abs(pixel_x * height * frames + pixel_y * frames + frame);
    const double value = film[pixel < film.size() ? pixel : 0];
    sum += ((value - 100) * (value - 100) - (value - 228) * (value - 228)) / 50;
  }
  return sum / (disk.size() / 2.0);
}

} // namespace

REFERENCE(particlefilter) {
  const int64_t particles = data.value("particles");
  constexpr int block_size = 512;
  auto x = data.f64("x"), y = data.f64("y"), drawn_x = data.f64("drawn_x"), drawn_y = data.f64("drawn_y");
  auto weights = data.f64("weights"), cumulated = data.f64("cumulated"), marks = data.f64("marks");
  auto block_sums = data.f64("block_sums");
  auto seeds = data.s32("seeds");

  for (int64_t k = 0; k < particles; ++k) {
    x[k] = drawn_x[k] + 1 + 5 * normal(seeds[k]);
    y[k] = drawn_y[k] - 2 + 2 * normal(seeds[k]);
    weights[k] = std::exp(log_likelihood(data, x[k], y[k])) / particles;
    block_sums[k / block_size] += weights[k];
  }
  // The first block's element is then replaced by the total.
  block_sums[0] = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights)
    weight /= block_sums[0];
  std::partial_sum(weights.begin(), weights.end(), cumulated.begin());

  seeds[particles + 1] = seeds[particles];
  const double first = uniform(seeds[particles + 1]) / particles;
  for (int64_t k = 0; k < particles; ++k) {
    marks[k] = first + k / static_cast<double>(particles);
    const auto reached = std::ranges::lower_bound(cumulated, marks[k]);
    const int64_t drawn = std::min<int64_t>(reached - cumulated.begin(), particles - 1);
    drawn_x[k] = x[drawn];
    drawn_y[k] = y[drawn];
  }
  // Doubles whose logarithms, cosines and exponentials may have an error of one unit; exponents reach 300.
  for (const char* name : {"x", "y", "drawn_x", "drawn_y", "marks"})
    data.tolerate(name, {.relative = 2e-15});
  for (const char* name : {"weights", "block_sums", "cumulated"})
    data.tolerate(name, {.relative = 2e-13});
}
