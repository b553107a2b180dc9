// The 8, 6 and 4-bit float formats as tables of their values, built bit by bit: the reference for conversions to them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ptxrewrite::test {

struct NarrowFormat {
  int exponent_bits;
  int fraction_bits;
  uint32_t nan;               // the code for NaN
  std::vector<double> values; // of all finite codes without sign, in ascending order
  uint32_t sign() const { return 1u << (exponent_bits + fraction_bits); }
  uint32_t last() const { return static_cast<uint32_t>(values.size() - 1); }
};

inline NarrowFormat narrow_format(int exponent_bits, int fraction_bits, int count, uint32_t nan) {
  NarrowFormat result = {exponent_bits, fraction_bits, nan, {}};
  const int bias = (1 << (exponent_bits - 1)) - 1;
  for (int code = 0; code < count; ++code) {
    const int exponent = code >> fraction_bits;
    const int fraction = code & ((1 << fraction_bits) - 1);
    const double significand = fraction + (exponent != 0 ? 1 << fraction_bits : 0);
    result.values.push_back(std::ldexp(significand, (exponent != 0 ? exponent : 1) - bias - fraction_bits));
  }
  return result;
}
// e4m3 has one NaN and no infinity, e5m2 has both, the others neither: they convert NaN to the largest number.
inline const NarrowFormat e4m3_values = narrow_format(4, 3, 0x7f, 0x7f);
inline const NarrowFormat e5m2_values = narrow_format(5, 2, 0x7c, 0x7f);
inline const NarrowFormat e2m3_values = narrow_format(2, 3, 0x20, 0x1f);
inline const NarrowFormat e3m2_values = narrow_format(3, 2, 0x20, 0x1f);
inline const NarrowFormat e2m1_values = narrow_format(2, 1, 0x08, 0x07);

// The lower one of the two codes around a magnitude, and the distance of the magnitude from it, in steps.
struct Place {
  uint32_t code;
  double fraction;
};
inline Place place(const NarrowFormat& format, double magnitude) {
  uint32_t code = 0;
  while (code < format.last() && format.values[code + 1] <= magnitude)
    ++code;
  const uint32_t below = code < format.last() ? code : code - 1;
  const double step = format.values[below + 1] - format.values[below];
  return {code, (magnitude - format.values[code]) / step};
}
inline uint32_t nearest_code(const NarrowFormat& format, double magnitude) {
  const Place p = place(format, magnitude);
  const bool up = p.fraction > 0.5 || (p.fraction == 0.5 && (p.code & 1) != 0);
  return std::min(p.code + (up ? 1u : 0u), format.last());
}
// The code after stochastic rounding with 16 random bits.
inline uint32_t stochastic_code(const NarrowFormat& format, double magnitude, uint32_t random) {
  const Place p = place(format, magnitude);
  const bool up = std::floor(p.fraction * 0x1p16) + random >= 0x1p16;
  return std::min(p.code + (up ? 1u : 0u), format.last());
}

} // namespace ptxrewrite::test
