// f32 and f64 arithmetic of one lane: add, sub, mul, fma (and mad, which is the same), div, rcp, sqrt in all roundings,
// with .ftz and .sat; abs, neg, copysign, testp; mixed precision add, sub, fma.
//
// f32 in directed rounding is computed in f64: products of f32 are exact there, sums are rounded to odd, quotients and
// roots have enough bits that rounding them to f64 cannot move an inexact value onto or across an f32 number. f64 sums
// are corrected by their exact error; other f64 operations are computed on integers (wide_float.h).
//
// .ftz: subnormal operands and results become zeros of their sign. A result is subnormal if the exact value, rounded to
// the precision of the type but with unbounded exponent, is below the smallest normal number (tininess after rounding),
// as ptxas folds mul.ftz.f32.
#pragma once

#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/rounding.h"
#include "emulator/semantics/wide_float.h"

#include <cstdint>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

// The modifiers of f32 arithmetic.
template <Rounding Mode_ = Rounding::nearest_even, bool Flush_ = false, bool Saturate_ = false> struct FloatMode {
  static constexpr Rounding rounding = Mode_;
  static constexpr bool flush = Flush_;
  static constexpr bool saturate = Saturate_;
  static constexpr bool nearest = Mode_ == Rounding::nearest_even;
};

// An f32 fma rounded to nearest even. The fallback is exact, too: its product is exact and its sum is rounded to odd.
constexpr float fma_nearest(float a, float b, float c) {
#if defined(__FMA__)
  if (!std::is_constant_evaluated()) return __builtin_fmaf(a, b, c);
#endif
  return static_cast<float>(add_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
}

namespace detail {

// Multiplying both sides of a comparison by tiny_scale keeps tiny f32 values normal.
inline constexpr float tiny_scale = 0x1p64f;
inline constexpr float scaled_min_normal = 0x1p-62f;

// Flushes `result` if it is tiny; scaled_result, computed from operands scaled by tiny_scale, tells whether it is.
constexpr float flushed_if_tiny(float result, float scaled_result) {
  const bool tiny = (scaled_result < scaled_min_normal) & (scaled_result > -scaled_min_normal);
  return tiny ? from_bits<float>(to_bits(result) & FloatTraits<float>::sign) : result;
}

// Rounds `value` to f32; it is exact, rounded to odd, or precise enough that rounding it again is correct.
template <class Mode> constexpr float finish(double value) {
  float result = narrow<Mode::rounding>(value);
  if constexpr (Mode::flush)
    result = flushed_if_tiny(result, narrow<Mode::rounding>(value * static_cast<double>(tiny_scale)));
  result = canonical(result);
  if constexpr (Mode::saturate) result = saturated(result);
  return result;
}
template <class Mode> constexpr float finish_nearest(float result) {
  if constexpr (Mode::saturate) return saturated(result);
  return canonical(result);
}

} // namespace detail

template <class Mode = FloatMode<>> constexpr float add_f32(float a, float b) {
  a = flushed_if<Mode::flush>(a);
  b = flushed_if<Mode::flush>(b);
  // A sum below the normal numbers is exact, so it can be flushed after it is rounded.
  if constexpr (Mode::nearest) return detail::finish_nearest<Mode>(flushed_if<Mode::flush>(a + b));
  const double x = a, y = b;
  return detail::finish<Mode>(with_zero_sign<Mode::rounding>(add_odd(x, y), x, y));
}
template <class Mode = FloatMode<>> constexpr float sub_f32(float a, float b) {
  if constexpr (Mode::nearest) {
    a = flushed_if<Mode::flush>(a);
    b = flushed_if<Mode::flush>(b);
    return detail::finish_nearest<Mode>(flushed_if<Mode::flush>(a - b));
  }
  return add_f32<Mode>(a, -b);
}
template <class Mode = FloatMode<>> constexpr float mul_f32(float a, float b) {
  a = flushed_if<Mode::flush>(a);
  b = flushed_if<Mode::flush>(b);
  if constexpr (Mode::nearest && Mode::flush)
    return detail::finish_nearest<Mode>(detail::flushed_if_tiny(a * b, a * detail::tiny_scale * b));
  else if constexpr (Mode::nearest)
    return detail::finish_nearest<Mode>(a * b);
  else
    return detail::finish<Mode>(static_cast<double>(a) * static_cast<double>(b));
}
template <class Mode = FloatMode<>> constexpr float fma_f32(float a, float b, float c) {
  a = flushed_if<Mode::flush>(a);
  b = flushed_if<Mode::flush>(b);
  c = flushed_if<Mode::flush>(c);
  if constexpr (Mode::nearest && Mode::flush) {
    // If scaling overflows, the result is not tiny: cancellation of the larger term leaves zero or its last bits, which
    // are far above the smallest normal number.
    const float scaled = fma_nearest(a * detail::tiny_scale, b, c * detail::tiny_scale);
    return detail::finish_nearest<Mode>(detail::flushed_if_tiny(fma_nearest(a, b, c), scaled));
  } else if constexpr (Mode::nearest) {
    return detail::finish_nearest<Mode>(fma_nearest(a, b, c));
  } else {
    const double product = static_cast<double>(a) * static_cast<double>(b), addend = c;
    return detail::finish<Mode>(with_zero_sign<Mode::rounding>(add_odd(product, addend), product, addend));
  }
}
template <class Mode = FloatMode<>> constexpr float div_f32(float a, float b) {
  a = flushed_if<Mode::flush>(a);
  b = flushed_if<Mode::flush>(b);
  if constexpr (Mode::nearest && !Mode::flush) return detail::finish_nearest<Mode>(a / b);
  return detail::finish<Mode>(static_cast<double>(a) / static_cast<double>(b));
}
template <class Mode = FloatMode<>> constexpr float rcp_f32(float a) {
  return div_f32<Mode>(1.0f, a);
}
template <class Mode = FloatMode<>> inline float sqrt_f32(float a) {
  a = flushed_if<Mode::flush>(a);
  if constexpr (Mode::nearest) return detail::finish_nearest<Mode>(__builtin_sqrtf(a));
  return detail::finish<Mode>(__builtin_sqrt(static_cast<double>(a)));
}

template <Rounding Mode = Rounding::nearest_even> constexpr double add_f64(double a, double b) {
  const double sum = a + b;
  if constexpr (Mode == Rounding::nearest_even) return with_nan_of(sum, a, b);
  // Fast2Sum: with the larger operand first the error is exact, and only the sum itself can overflow; the infinite
  // error then corrects it.
  const bool in_order = __builtin_fabs(a) >= __builtin_fabs(b);
  const double large = in_order ? a : b;
  const double small = in_order ? b : a;
  const double error = small - (sum - large);
  return with_nan_of(directed<Mode>(with_zero_sign<Mode>(sum, a, b), error), a, b);
}
template <Rounding Mode = Rounding::nearest_even> constexpr double sub_f64(double a, double b) {
  if constexpr (Mode == Rounding::nearest_even) return with_nan_of(a - b, a, b);
  return with_nan_of(add_f64<Mode>(a, -b), a, b);
}
template <Rounding Mode = Rounding::nearest_even> constexpr double mul_f64(double a, double b) {
  if constexpr (Mode == Rounding::nearest_even)
    return with_nan_of(a * b, a, b);
  else
    return with_nan_of(wide_mul<Mode>(a, b), a, b);
}
template <Rounding Mode = Rounding::nearest_even> inline double fma_f64(double a, double b, double c) {
  if constexpr (Mode == Rounding::nearest_even)
    return with_nan_of(__builtin_fma(a, b, c), a, b, c);
  else
    return with_nan_of(wide_fma<Mode>(a, b, c), a, b, c);
}
template <Rounding Mode = Rounding::nearest_even> constexpr double div_f64(double a, double b) {
  if constexpr (Mode == Rounding::nearest_even)
    return with_nan_of(a / b, a, b);
  else
    return with_nan_of(wide_div<Mode>(a, b), a, b);
}
// .ftz is accepted for f64 reciprocals and flushes operand and result.
template <Rounding Mode = Rounding::nearest_even, bool Flush = false> constexpr double rcp_f64(double a) {
  return flushed_if<Flush>(div_f64<Mode>(1.0, flushed_if<Flush>(a)));
}
template <Rounding Mode = Rounding::nearest_even> inline double sqrt_f64(double a) {
  if constexpr (Mode == Rounding::nearest_even)
    return with_nan_of(__builtin_sqrt(a), a);
  else
    return with_nan_of(wide_sqrt<Mode>(a), a);
}

// The half-precision operands are extended to f32, the operation is an f32 one.
template <class Mode, class Half> constexpr float add_mixed(Half a, float c) {
  return add_f32<Mode>(to_float(a), c);
}
template <class Mode, class Half> constexpr float sub_mixed(Half a, float c) {
  return sub_f32<Mode>(to_float(a), c);
}
template <class Mode, class Half> constexpr float fma_mixed(Half a, Half b, float c) {
  return fma_f32<Mode>(to_float(a), to_float(b), c);
}

// NaNs are made quiet, keep their payload and get the new sign, as ptxas folds them.
template <bool Flush = false, class T> constexpr T abs_float(T a) {
  return from_bits<T>(magnitude_bits(flushed_if<Flush>(quieted(a))));
}
template <bool Flush = false, class T> constexpr T neg_float(T a) {
  return from_bits<T>(static_cast<BitsOf<T>>(to_bits(flushed_if<Flush>(quieted(a))) ^ FloatTraits<T>::sign));
}
// The magnitude of b with the sign of a.
template <class T> constexpr T copysign_float(T a, T b) {
  return with_sign(b, to_bits(a));
}

enum class FloatProperty : uint8_t { finite, infinite, number, not_a_number, normal, subnormal };
// Zeros are normal numbers.
template <FloatProperty Property, class T> constexpr bool testp(T a) {
  switch (Property) {
  case FloatProperty::finite:
    return magnitude_bits(a) < FloatTraits<T>::infinity;
  case FloatProperty::infinite:
    return is_infinite(a);
  case FloatProperty::number:
    return !is_nan(a);
  case FloatProperty::not_a_number:
    return is_nan(a);
  case FloatProperty::normal:
    return magnitude_bits(a) < FloatTraits<T>::infinity && !is_subnormal(a);
  case FloatProperty::subnormal:
    return is_subnormal(a);
  }
  return false;
}

} // namespace ptxrewrite::emulator::semantics
