// Directed rounding without changing the FPU's rounding mode, exact for every operand.
//
// A result is first computed in a wider format rounded to odd: of the two neighbours of an inexact value the one with
// an odd significand. Rounding that once more, in any mode, to a format at least two bits narrower is the same as
// rounding the exact value once (Boldo and Melquiond 2008). The error of a sum, which TwoSum computes exactly, tells
// whether the rounded sum is too large or too small. A compiler that moves or folds operations does not change the
// results as long as it preserves the values of IEEE expressions (no -ffast-math, no contraction).
#pragma once

#include "emulator/semantics/float_bits.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

enum class Rounding : uint8_t { nearest_even, toward_zero, down, up };

template <class T> using SignedBitsOf = typename FloatTraits<T>::SignedBits;

// -1 for numbers with a sign bit, 1 for others.
template <class T> constexpr SignedBitsOf<T> sign_unit(T a) {
  return static_cast<SignedBitsOf<T>>((std::bit_cast<SignedBitsOf<T>>(a) >> (8 * sizeof(T) - 1)) | 1);
}

// Adds a step to the bits of x: 1 gives the next number away from zero, -1 the next number towards it.
template <class T> constexpr T stepped(T x, SignedBitsOf<T> away_from_zero) {
  return std::bit_cast<T>(static_cast<SignedBitsOf<T>>(std::bit_cast<SignedBitsOf<T>>(x) + away_from_zero));
}

// The rounding error of a sum: a + b == sum + two_sum_error(a, b, sum) exactly, unless the sum overflows.
template <class T> constexpr T two_sum_error(T a, T b, T sum) {
  const T b_part = sum - a;
  const T a_part = sum - b_part;
  return (a - a_part) + (b - b_part);
}

// `rounded` is the number nearest to rounded + error; returns the odd one of the two numbers around the exact value.
template <class T> constexpr T to_odd(T rounded, T error) {
  const bool inexact = (error < 0) | (error > 0); // not for NaN
  const SignedBitsOf<T> away = sign_unit(from_bits<T>(to_bits(rounded) ^ to_bits(error)));
  const SignedBitsOf<T> if_even = (std::bit_cast<SignedBitsOf<T>>(rounded) & 1) - 1;
  return inexact ? stepped(rounded, away & if_even) : rounded;
}

// a + b, rounded to odd.
template <class T> constexpr T add_odd(T a, T b) {
  const T sum = a + b;
  return to_odd(sum, two_sum_error(a, b, sum));
}

// Corrects a nearest-even result to another rounding mode: `error` is the exact value minus `nearest` (or any number of
// that sign; infinite or NaN if there is none). An infinity is above all exact values.
template <Rounding Mode, class T, class E> constexpr T directed(T nearest, E error) {
  const SignedBitsOf<T> unit = sign_unit(nearest);
  if constexpr (Mode == Rounding::nearest_even) return nearest;
  if constexpr (Mode == Rounding::down) return error < 0 ? stepped(nearest, -unit) : nearest;
  if constexpr (Mode == Rounding::up) return error > 0 ? stepped(nearest, unit) : nearest;
  const E unit_of_sign = from_bits<E>((to_bits(static_cast<E>(nearest)) & FloatTraits<E>::sign) | FloatTraits<E>::one);
  return error * unit_of_sign < 0 ? stepped(nearest, -1) : nearest;
}

// f64 to f32. NaN gives a NaN with the upper bits of the payload.
template <Rounding Mode> constexpr float narrow(double a) {
  const float nearest = static_cast<float>(a);
  if constexpr (Mode == Rounding::nearest_even) return nearest;
  return directed<Mode>(nearest, a - static_cast<double>(nearest));
}

// f64 to f32, rounded to odd, before a conversion to f16 or bf16.
constexpr float narrow_odd(double a) {
  const float nearest = static_cast<float>(a);
  const double back = nearest;
  const double unit = from_bits<double>((to_bits(a) & FloatTraits<double>::sign) | FloatTraits<double>::one);
  const bool too_far = back * unit > a * unit;
  const bool inexact = (back < a) | (back > a);
  return from_bits<float>((to_bits(nearest) - (too_far ? 1u : 0u)) | (inexact ? 1u : 0u));
}

// Gives an exact zero sum its sign: negative if both terms are negative or, when rounding down, if one of them is.
template <Rounding Mode, class T> constexpr T with_zero_sign(T sum, T first, T second) {
  if constexpr (Mode == Rounding::down)
    return sum == 0 ? from_bits<T>((to_bits(first) | to_bits(second)) & FloatTraits<T>::sign) : sum;
  else
    return sum;
}

} // namespace ptxrewrite::emulator::semantics
