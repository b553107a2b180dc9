// Floating-point numbers as bit patterns: the types of a lane, NaNs, subnormal numbers, clamping.
//
// NaN results: PTX leaves the NaNs of 32-bit and narrower types open; here they are the canonical ones (0x7fffffff,
// 0x7fff), as NVIDIA's assembler and GPUs produce them. f64 operations propagate the payload of the first NaN
// operand.
//
// Functions are pure, total and free of branches on data, so that a loop over the 32 lanes of a warp vectorises. They
// require that the FPU rounds to nearest, its default.
#pragma once

#include <bit>
#include <cstdint>

namespace ptxrewrite::emulator::semantics {

// Halves are stored as bits: their arithmetic is done in wider types.
struct Float16 {
  uint16_t bits = 0;
};
struct BFloat16 {
  uint16_t bits = 0;
};
// Two numbers in one register.
template <class T> struct Pair {
  T low;
  T high;
};
using Float16x2 = Pair<Float16>;
using BFloat16x2 = Pair<BFloat16>;
using Float32x2 = Pair<float>;

template <class T> struct FloatTraits;
template <> struct FloatTraits<Float16> {
  using Bits = uint16_t;
  using SignedBits = int16_t;
  static constexpr Bits sign = 0x8000, infinity = 0x7c00, canonical_nan = 0x7fff, quiet = 0x0200, one = 0x3c00;
};
template <> struct FloatTraits<BFloat16> {
  using Bits = uint16_t;
  using SignedBits = int16_t;
  static constexpr Bits sign = 0x8000, infinity = 0x7f80, canonical_nan = 0x7fff, quiet = 0x0040, one = 0x3f80;
};
template <> struct FloatTraits<float> {
  using Bits = uint32_t;
  using SignedBits = int32_t;
  static constexpr Bits sign = 0x80000000, infinity = 0x7f800000, canonical_nan = 0x7fffffff, quiet = 0x00400000,
                        one = 0x3f800000;
};
template <> struct FloatTraits<double> {
  using Bits = uint64_t;
  using SignedBits = int64_t;
  static constexpr Bits sign = 0x8000000000000000, infinity = 0x7ff0000000000000, quiet = 0x0008000000000000,
                        canonical_nan = 0x7fffffffffffffff, one = 0x3ff0000000000000;
};
template <class T> using BitsOf = typename FloatTraits<T>::Bits;

template <class T> constexpr BitsOf<T> to_bits(T a) {
  return std::bit_cast<BitsOf<T>>(a);
}
template <class T> constexpr T from_bits(BitsOf<T> bits) {
  return std::bit_cast<T>(bits);
}
template <class T> constexpr BitsOf<T> magnitude_bits(T a) {
  return static_cast<BitsOf<T>>(to_bits(a) & ~FloatTraits<T>::sign);
}
template <class T> constexpr bool is_nan(T a) {
  return magnitude_bits(a) > FloatTraits<T>::infinity;
}
constexpr bool is_nan(float a) {
  return a != a;
}
constexpr bool is_nan(double a) {
  return a != a;
}
template <class T> constexpr bool is_infinite(T a) {
  return magnitude_bits(a) == FloatTraits<T>::infinity;
}
// The smallest normal number has only the lowest exponent bit set.
template <class T> constexpr BitsOf<T> min_normal_bits = static_cast<BitsOf<T>>(FloatTraits<T>::quiet << 1);
template <class T> constexpr bool is_subnormal(T a) {
  return magnitude_bits(a) < min_normal_bits<T> && magnitude_bits(a) != 0;
}
template <class T> constexpr bool is_negative(T a) {
  return (to_bits(a) & FloatTraits<T>::sign) != 0;
}

template <class T> constexpr T canonical_nan() {
  return from_bits<T>(FloatTraits<T>::canonical_nan);
}
template <class T> constexpr T canonical(T a) {
  return is_nan(a) ? canonical_nan<T>() : a;
}
// A signalling NaN becomes a quiet one.
template <class T> constexpr T quieted(T a) {
  return is_nan(a) ? from_bits<T>(static_cast<BitsOf<T>>(to_bits(a) | FloatTraits<T>::quiet)) : a;
}
template <class T> constexpr T with_sign(T magnitude, BitsOf<T> sign_bits) {
  return from_bits<T>(static_cast<BitsOf<T>>(magnitude_bits(magnitude) | (sign_bits & FloatTraits<T>::sign)));
}

// Subnormal numbers become zeros of their sign.
template <class T> constexpr T flushed(T a) {
  const auto bits = to_bits(a);
  const auto sign = static_cast<BitsOf<T>>(bits & FloatTraits<T>::sign);
  return from_bits<T>(magnitude_bits(a) < min_normal_bits<T> ? sign : bits);
}
template <bool Flush, class T> constexpr T flushed_if(T a) {
  if constexpr (Flush)
    return flushed(a);
  else
    return a;
}

// .sat: [+0, 1]; NaN and -0 become +0.
constexpr float saturated(float a) {
  const float positive = a > 0.0f ? a : 0.0f;
  return positive < 1.0f ? positive : 1.0f;
}
constexpr double saturated(double a) {
  const double positive = a > 0.0 ? a : 0.0;
  return positive < 1.0 ? positive : 1.0;
}
// Bit patterns of positive numbers have the same order as the numbers.
template <class T> constexpr T saturated_bits(T a) {
  const auto bits = is_nan(a) || is_negative(a) ? BitsOf<T>{0} : to_bits(a);
  return from_bits<T>(bits < FloatTraits<T>::one ? bits : FloatTraits<T>::one);
}
constexpr Float16 saturated(Float16 a) {
  return saturated_bits(a);
}
constexpr BFloat16 saturated(BFloat16 a) {
  return saturated_bits(a);
}

// .relu: negative numbers, including -0, become +0; NaNs become the canonical NaN.
template <class T> constexpr T clamped_below(T a) {
  return is_nan(a) ? canonical_nan<T>() : is_negative(a) ? from_bits<T>(0) : a;
}

// The NaN of f64 arithmetic: the first NaN among the operands, made quiet, or the default NaN of an invalid operation.
// SSE has the same rule, but the compiler may exchange the operands, which matters if both are NaN.
#if defined(__x86_64__)
constexpr bool native_nan_rules = true;
#else
constexpr bool native_nan_rules = false;
#endif
constexpr double default_nan = std::bit_cast<double>(uint64_t{0xfff8000000000000});

constexpr double with_nan_of(double result, double a) {
  if constexpr (native_nan_rules)
    return result;
  else
    return is_nan(a) ? quieted(a) : is_nan(result) ? default_nan : result;
}
constexpr double with_nan_of(double result, double a, double b) {
  const double quiet_a = from_bits<double>(to_bits(a) | FloatTraits<double>::quiet);
  return is_nan(a) ? quiet_a : with_nan_of(result, b);
}
constexpr double with_nan_of(double result, double a, double b, double c) {
  const double quiet_a = from_bits<double>(to_bits(a) | FloatTraits<double>::quiet);
  const double quiet_b = from_bits<double>(to_bits(b) | FloatTraits<double>::quiet);
  return is_nan(a) ? quiet_a : is_nan(b) ? quiet_b : with_nan_of(result, c);
}

} // namespace ptxrewrite::emulator::semantics
