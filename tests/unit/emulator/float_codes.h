// Binary formats of few bits by their definitions, for tests that compare matrix products bit for bit: the value of
// every code, the code of a value, and random codes with NaNs, infinities and subnormal numbers among them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace ptxrewrite::emulator_test::float_codes {

// Codes whose exponent is all ones: infinity and NaNs; numbers but for the code of all ones; numbers.
enum class Specials { ieee, one_nan, none };

// A binary format by its definition.
struct Format {
  const char* name;
  int exponent_bits, fraction_bits;
  Specials specials;
  int unused; // bits below the fraction in the element's place: tf32
  int bits() const { return 1 + exponent_bits + fraction_bits + unused; }
};
inline constexpr Format f16{"f16", 5, 10, Specials::ieee, 0}, bf16{"bf16", 8, 7, Specials::ieee, 0},
    tf32{"tf32", 8, 10, Specials::ieee, 13}, f32{"f32", 8, 23, Specials::ieee, 0},
    e4m3{"e4m3", 4, 3, Specials::one_nan, 0}, e5m2{"e5m2", 5, 2, Specials::ieee, 0},
    e3m2{"e3m2", 3, 2, Specials::none, 0}, e2m3{"e2m3", 2, 3, Specials::none, 0}, e2m1{"e2m1", 2, 1, Specials::none, 0};

inline double value_of(const Format& format, uint32_t code) {
  code >>= format.unused;
  const int all_ones = (1 << format.exponent_bits) - 1, bias = all_ones / 2;
  const int exponent = static_cast<int>(code >> format.fraction_bits) & all_ones;
  const uint32_t fraction = code & ((1u << format.fraction_bits) - 1);
  const bool is_negative = code >> (format.exponent_bits + format.fraction_bits) & 1;
  double magnitude = 0;
  if (format.specials == Specials::ieee && exponent == all_ones)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (format.specials == Specials::one_nan && exponent == all_ones && fraction == (1u << format.fraction_bits) - 1)
    magnitude = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, 1 - bias - format.fraction_bits);
  else
    magnitude = std::ldexp((1u << format.fraction_bits) + fraction, exponent - bias - format.fraction_bits);
  return is_negative ? -magnitude : magnitude;
}

inline uint32_t f32_bits(float value) {
  return std::isnan(value) ? 0x7fffffff : std::bit_cast<uint32_t>(value);
}

// To nearest, ties to even; in steps of the last bit of numbers of that size.
inline uint32_t f16_bits(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(value)) return sign | 0x7c00;
  const int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
  const double rounded = std::nearbyint(std::ldexp(magnitude, 10 - exponent)); // 2048 is the next power of two
  if (std::ldexp(rounded, exponent - 10) >= 65536) return sign | 0x7c00;
  const auto steps = static_cast<uint32_t>(rounded);
  return sign | (steps < 1024 ? steps : (static_cast<uint32_t>(exponent + 14) << 10) + steps);
}

enum class Codes { any, finite, small, few_specials };

inline uint32_t code_of(const Format& format, Codes codes, std::mt19937& random) {
  const auto any = static_cast<uint32_t>(random()) & (format.bits() == 32 ? ~0u : (1u << format.bits()) - 1);
  const bool wants_any = codes == Codes::any || (codes == Codes::few_specials && random() % 64 == 0);
  if (wants_any) return any;
  uint32_t code = any;
  // Without the top bit of the exponent nothing is infinite or NaN, and all is below two.
  if (codes == Codes::small) // subnormal numbers, zeros, and ones near them
    code &= ~((((1u << format.exponent_bits) - 1) & ~1u) << (format.fraction_bits + format.unused));
  else if (codes == Codes::few_specials || std::isnan(value_of(format, code)) || std::isinf(value_of(format, code)))
    code &= ~(1u << (format.exponent_bits - 1 + format.fraction_bits + format.unused));
  return code;
}

} // namespace ptxrewrite::emulator_test::float_codes
