// The .approx instructions of one lane: div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh.
//
// A GPU computes these functions from tables with a few more bits than it returns; the manual bounds the error and
// leaves the bits open. Here they are computed in f64, far more precisely than f32, and rounded once, so that nearly
// every result is the correctly rounded one: within all documented bounds, equal to ptxas' folding, and the same on
// every host, since only IEEE additions, multiplications, divisions and roots are used, no mathematics library.
//
// .ftz flushes operands and results as in float.h. sin and cos flush their operand without .ftz, too, as ptxas folds
// them.
#pragma once

#include "emulator/semantics/float.h"
#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/half.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ptxrewrite::emulator::semantics {

namespace detail {

// Evaluates the polynomial with these coefficients, lowest order first. An fma has a single rounding on every host,
// with or without an instruction for it.
template <std::size_t n> inline double polynomial(double x, const std::array<double, n>& coefficients) {
  double sum = coefficients[n - 1];
#pragma GCC unroll 16
  for (std::size_t i = n - 1; i > 0; --i)
    sum = __builtin_fma(sum, x, coefficients[i - 1]);
  return sum;
}

// 1/k! * factor^k for k = 0, 1, ...
template <std::size_t n> constexpr std::array<double, n> exponential_series(double factor) {
  std::array<double, n> series{};
  double term = 1;
  for (std::size_t k = 0; k < n; ++k) {
    series[k] = term;
    term = term * factor / static_cast<double>(k + 1);
  }
  return series;
}
// The coefficients of x, x^3, x^5 ... in the series of sin(factor * x).
template <std::size_t n> constexpr std::array<double, n> sine_series(double factor) {
  std::array<double, n> series{};
  double term = factor;
  for (std::size_t k = 0; k < n; ++k) {
    series[k] = term;
    const double next = static_cast<double>(2 * k + 2);
    term = -term * factor * factor / (next * (next + 1));
  }
  return series;
}
// 2 / ln 2 * 1/(2k + 1): the series of log2 by the inverse hyperbolic tangent.
template <std::size_t n> constexpr std::array<double, n> logarithm_series() {
  std::array<double, n> series{};
  for (std::size_t k = 0; k < n; ++k)
    series[k] = 2.8853900817779268147 / static_cast<double>(2 * k + 1);
  return series;
}

// 2^x for any x; x is clamped to [-1000, 1000], which is far beyond the exponents of f32.
inline double exp2_wide(double x) {
  constexpr auto series = exponential_series<12>(0.69314718055994530942);
  constexpr double limit = 1000;
  double bounded = x < limit ? x : limit; // NaN, too
  bounded = bounded > -limit ? bounded : -limit;
  // Adding 1.5 * 2^52 leaves the nearest integer in the low bits.
  constexpr double shifter = 0x1.8p52;
  const double shifted = bounded + shifter;
  const double fraction = bounded - (shifted - shifter);
  const uint64_t scale = (to_bits(shifted) + 1023) << 52;
  const double result = polynomial(fraction, series) * from_bits<double>(scale);
  return is_nan(x) ? x : result;
}

// log2(x) for normal x > 0.
inline double log2_wide(double x) {
  constexpr auto series = logarithm_series<9>();
  // x = mantissa * 2^exponent with the mantissa in [sqrt(1/2), sqrt(2))
  constexpr uint64_t root_half = 0x3fe6a09e667f3bcd;
  const uint64_t above = to_bits(x) - root_half;
  // Builds the exponent as a small integer in the low bits of a double, which avoids a 64-bit integer conversion.
  const uint64_t biased = (above + (uint64_t{1024} << 52)) >> 52;
  const double exponent = from_bits<double>(biased | 0x4330000000000000) - (0x1p52 + 1024);
  const double mantissa = from_bits<double>((above & 0xfffffffffffff) + root_half);
  const double s = (mantissa - 1) / (mantissa + 1);
  return exponent + s * polynomial(s * s, series);
}

// 1 / (2 pi) in pieces of 29 bits: their products with the 24 bits of an f32 are exact.
constexpr double inverse_circle[] = {0x1.45f306dp-3,   0x1.9391054p-32,  0x1.4fe13abp-61, 0x1.d1f534dp-90,
                                     0x1.b81b6c5p-119, 0x1.5993c43p-150, 0x1.2083fcap-179};
// Below this magnitude only the product with the first piece has an integral part.
constexpr float few_turns = 0x1p30f;

// x / (2 pi) minus the nearest integer, for any finite f32. The subtraction of an integral part is exact, too.
inline double turns(float x) {
  double sum = 0;
#pragma GCC unroll 8
  for (double piece : inverse_circle) {
    const double product = static_cast<double>(x) * piece;
    sum += product - __builtin_rint(product);
  }
  return sum - __builtin_rint(sum);
}
// Smaller angles are their own sine: in turns they would be subnormal.
constexpr float tiny_angle = 0x1p-102f;

// The sine of an angle in turns, |turns| <= 1.
inline double sine_of_turns(double turns) {
  constexpr auto series = sine_series<11>(6.28318530717958647693);
  const double half_turns = __builtin_rint(turns * 2);
  const double rest = turns - half_turns * 0.5; // in [-1/4, 1/4]
  const double sine = rest * polynomial(rest * rest, series);
  const bool odd = (half_turns == 1) | (half_turns == -1);
  return odd ? -sine : sine;
}

// tanh(x), from 2^(2 x / ln 2); small x, where that formula cancels, use the Taylor series.
inline double tanh_wide(double x) {
  const double power = exp2_wide(x * 2.8853900817779268147);
  const double by_power = (power - 1) / (power + 1);
  const double square = x * x;
  const double by_series = x * (1 - square * (1.0 / 3 - square * (2.0 / 15 - square * (17.0 / 315))));
  const bool small = (x < 0x1p-6) & (x > -0x1p-6);
  return small ? by_series : by_power;
}

template <bool Flush> constexpr float finish_approximate(double value) {
  return finish<FloatMode<Rounding::nearest_even, Flush>>(value);
}

} // namespace detail

template <bool Flush = false> constexpr float rcp_approx(float a) {
  return detail::finish_approximate<Flush>(1.0 / static_cast<double>(flushed_if<Flush>(a)));
}
// a times the reciprocal of b; the reciprocal counts as zero for |b| > 2^126.
template <bool Flush = false> constexpr float div_approx(float a, float b) {
  const float x = flushed_if<Flush>(a);
  const float y = flushed_if<Flush>(b);
  const bool huge = magnitude_bits(y) > 0x7e800000 && magnitude_bits(y) < FloatTraits<float>::infinity;
  const float by_zero = canonical(x * with_sign(0.0f, to_bits(y)));
  const float quotient = detail::finish_approximate<Flush>(static_cast<double>(x) / static_cast<double>(y));
  return huge ? by_zero : quotient;
}
template <bool Flush = false> constexpr float div_full(float a, float b) {
  return div_f32<FloatMode<Rounding::nearest_even, Flush>>(a, b);
}
template <bool Flush = false> inline float sqrt_approx(float a) {
  return sqrt_f32<FloatMode<Rounding::nearest_even, Flush>>(a);
}
template <bool Flush = false> inline float rsqrt_approx(float a) {
  const double root = __builtin_sqrt(static_cast<double>(flushed_if<Flush>(a)));
  return detail::finish_approximate<Flush>(1.0 / root);
}
inline double rsqrt_approx(double a) {
  return with_nan_of(1.0 / __builtin_sqrt(a), a);
}

template <bool Flush = false> inline float sin_approx(float a) {
  const float x = flushed(a);
  const bool tiny = magnitude_bits(x) < to_bits(detail::tiny_angle); // -0, too
  const float sine = static_cast<float>(detail::sine_of_turns(detail::turns(x)));
  return magnitude_bits(x) >= FloatTraits<float>::infinity ? canonical_nan<float>()
         : tiny                                            ? x
                                                           : flushed_if<Flush>(sine);
}
template <bool Flush = false> inline float cos_approx(float a) {
  const float x = flushed(a);
  const float cosine = static_cast<float>(detail::sine_of_turns(detail::turns(x) + 0.25));
  return magnitude_bits(x) >= FloatTraits<float>::infinity ? canonical_nan<float>() : flushed_if<Flush>(cosine);
}

template <bool Flush = false> inline float lg2_approx(float a) {
  const float x = flushed_if<Flush>(a);
  const bool positive = x > 0 && x < from_bits<float>(FloatTraits<float>::infinity);
  const auto logarithm = static_cast<float>(detail::log2_wide(positive ? static_cast<double>(x) : 1.0));
  // -inf for zeros, NaN for negative numbers and NaN, +inf for +inf.
  const float special = x == 0 ? from_bits<float>(0xff800000) : x > 0 ? x : canonical_nan<float>();
  return positive ? logarithm : special;
}
template <bool Flush = false> inline float ex2_approx(float a) {
  return detail::finish_approximate<Flush>(detail::exp2_wide(flushed_if<Flush>(a)));
}
inline float tanh_approx(float a) {
  return canonical(static_cast<float>(detail::tanh_wide(a)));
}

// Halves: ex2 of bf16 exists with .ftz only.
inline Float16 ex2_approx(Float16 a) {
  return to_half<Float16>(narrow_odd(detail::exp2_wide(to_float(a))));
}
inline BFloat16 ex2_approx(BFloat16 a) {
  return flushed(to_half<BFloat16>(narrow_odd(detail::exp2_wide(to_float(flushed(a))))));
}
template <class Half> inline Half tanh_approx_half(Half a) {
  return to_half<Half>(narrow_odd(detail::tanh_wide(to_float(a))));
}

namespace detail {

// The .approx.ftz.f64 instructions read and write only the upper 32 bits of an f64; their permitted error, about 2^-20,
// is the error of this rounding.
constexpr double upper_half(double a) {
  return flushed(from_bits<double>(to_bits(a) & 0xffffffff00000000));
}
constexpr double rounded_to_upper_half(double a) {
  const uint64_t bits = to_bits(a);
  const uint64_t rounded = (bits + 0x7fffffff + ((bits >> 32) & 1)) & 0xffffffff00000000;
  return is_nan(a) ? from_bits<double>(0x7fffffff00000000) : flushed(from_bits<double>(rounded));
}

} // namespace detail

constexpr double rcp_approx_ftz(double a) {
  const double x = detail::upper_half(a);
  return detail::rounded_to_upper_half(is_nan(a) ? a : 1.0 / x);
}
inline double rsqrt_approx_ftz(double a) {
  const double x = detail::upper_half(a);
  return detail::rounded_to_upper_half(is_nan(a) ? a : 1.0 / __builtin_sqrt(x));
}

} // namespace ptxrewrite::emulator::semantics
