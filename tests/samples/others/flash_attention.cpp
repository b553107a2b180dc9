// Attention from its definition in double precision: all scores of a query, their softmax, the weighted mean.
#include "tests/samples/reference.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

} // namespace

REFERENCE(flash_attention) {
  constexpr int width = 64;
  const int heads = data.value("heads");
  const int length = data.value("length");
  const auto result = data.f32("result");

  const auto matrix = [&](const char* name) {
    std::vector<double> values;
    for (const std::uint16_t bits : data.u16(name)) {
      values.push_back(half_value(bits));
    }
    return values;
  };
  const std::vector<double> q = matrix("q");
  const std::vector<double> k = matrix("k");
  const std::vector<double> v = matrix("v");

  for (int head = 0; head < heads; ++head) {
    const int first = head * length * width;
    for (int query = 0; query < length; ++query) {
      std::vector<double> weighted(width);
      double sum = 0;
      for (int key = 0; key < length; ++key) {
        double score = 0;
        for (int i = 0; i < width; ++i) {
          score += q[first + query * width + i] * k[first + key * width + i];
        }
        const double weight = std::exp(score / std::sqrt(width));
        sum += weight;
        for (int i = 0; i < width; ++i) {
          weighted[i] += weight * v[first + key * width + i];
        }
      }
      for (int i = 0; i < width; ++i) {
        result[first + query * width + i] = static_cast<float>(weighted[i] / sum);
      }
    }
  }

  // The weights are rounded to halves, a relative error of 2^-11, before they are multiplied by values up to 5.
  data.tolerate("result", {.absolute = 5e-4});
}
