// f16 and bf16 arithmetic of one lane, and the same on both halves of .f16x2 and .bf16x2: add, sub, mul, fma.
//
// Sums and products are computed in f32: 24 bits are at least twice the 11 or 8 bits of a half plus two, so a second
// rounding is correct. fma rounds to odd first (rounding.h). Modifiers: .ftz and .sat of f16, .relu, .oob, the directed
// roundings of bf16 fma. Subnormal f16 results, for .ftz, are defined as for f32 in float.h.
#pragma once

#include "emulator/semantics/float.h"
#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/rounding.h"
#include "emulator/semantics/small_floats.h"

#include <cstdint>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

template <class T> inline constexpr SmallFormat format_of = f16_format;
template <> inline constexpr SmallFormat format_of<BFloat16> = bf16_format;

// NaNs keep their payload.
constexpr float to_float(Float16 a) {
  return decode<f16_format>(a.bits);
}
constexpr float to_float(BFloat16 a) {
  return from_bits<float>(static_cast<uint32_t>(a.bits) << 16);
}

namespace detail {

// A faster encode<f16_format, nearest_even>: normal results by an integer addition that rounds and changes the bias,
// subnormal ones by an f32 addition that aligns the last bit with that of f16.
constexpr Float16 nearest_f16(float a) {
  const uint32_t magnitude = magnitude_bits(a);
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + odd) >> 13;
  const uint32_t subnormal = to_bits(from_bits<float>(magnitude) + 0.5f) - to_bits(0.5f);
  const uint32_t finite = magnitude < 113u << 23 ? subnormal : normal;
  const uint32_t code = magnitude < 143u << 23 ? finite : FloatTraits<Float16>::infinity;
  const uint32_t with_sign_bit = code | ((to_bits(a) >> 16) & FloatTraits<Float16>::sign);
  return {static_cast<uint16_t>(is_nan(a) ? FloatTraits<Float16>::canonical_nan : with_sign_bit)};
}

} // namespace detail

// f32 to f16 or bf16.
template <class Half, NarrowRounding Mode = NarrowRounding::nearest_even, NarrowOptions Options = {}>
constexpr Half to_half(float a, uint32_t random = 0) {
  if constexpr (std::is_same_v<Half, Float16> && Mode == NarrowRounding::nearest_even && !Options.finite) {
    const Float16 result = detail::nearest_f16(a);
    return Options.relu ? clamped_below(result) : result;
  } else {
    return {static_cast<uint16_t>(encode<format_of<Half>, Mode, Options>(a, random))};
  }
}

// The modifiers of arithmetic on halves.
struct HalfMode {
  Rounding rounding = Rounding::nearest_even;
  bool flush = false;
  bool saturate = false;
  bool relu = false;
  bool out_of_bounds = false; // .oob
};

namespace detail {

// Rounds `value` to Half; it is exact, or rounded to f32 in a way that does not change the result.
template <class Half, HalfMode Mode> constexpr Half finish_half(float value) {
  Half result = to_half<Half, narrow_rounding(Mode.rounding), NarrowOptions{.relu = Mode.relu}>(value);
  if constexpr (Mode.flush) {
    // Below the midpoint between the smallest normal number and the next smaller one of an unbounded exponent range.
    constexpr float limit = 0x1.ffep-15f;
    const auto sign = static_cast<uint16_t>(result.bits & FloatTraits<Half>::sign);
    result.bits = ((value < limit) & (value > -limit)) ? sign : result.bits;
  }
  if constexpr (Mode.saturate) result = saturated(result);
  return result;
}

} // namespace detail

template <class Half, HalfMode Mode = {}> constexpr Half add_half(Half a, Half b) {
  return detail::finish_half<Half, Mode>(to_float(flushed_if<Mode.flush>(a)) + to_float(flushed_if<Mode.flush>(b)));
}
template <class Half, HalfMode Mode = {}> constexpr Half sub_half(Half a, Half b) {
  return detail::finish_half<Half, Mode>(to_float(flushed_if<Mode.flush>(a)) - to_float(flushed_if<Mode.flush>(b)));
}
template <class Half, HalfMode Mode = {}> constexpr Half mul_half(Half a, Half b) {
  return detail::finish_half<Half, Mode>(to_float(flushed_if<Mode.flush>(a)) * to_float(flushed_if<Mode.flush>(b)));
}

// The NaN that tensor copies use as fill value outside the bounds of a tensor, with either sign.
constexpr bool is_out_of_bounds_nan(uint16_t bits) {
  return (bits & 0x7fff) == 0x7ff7;
}

template <class Half, HalfMode Mode = {}> constexpr Half fma_half(Half a, Half b, Half c) {
  const float x = to_float(flushed_if<Mode.flush>(a));
  const float y = to_float(flushed_if<Mode.flush>(b));
  const float z = to_float(flushed_if<Mode.flush>(c));
  float value = 0;
  if constexpr (format_of<Half>.exponent_bits == 5) { // the product and the sum's error fit into f32
    value = with_zero_sign<Mode.rounding>(add_odd(x * y, z), x * y, z);
  } else {
    const double product = static_cast<double>(x) * static_cast<double>(y), addend = z;
    value = narrow_odd(with_zero_sign<Mode.rounding>(add_odd(product, addend), product, addend));
  }
  Half result = detail::finish_half<Half, Mode>(value);
  if constexpr (Mode.out_of_bounds)
    // Of the factors; the addend does not count (measured on an H100).
    if (is_out_of_bounds_nan(a.bits) | is_out_of_bounds_nan(b.bits)) result.bits = 0;
  return result;
}

// abs, neg. ptxas' folding: NaNs of single halves become canonical, in pairs only the sign bit changes.
template <bool Flush, class Half> constexpr Half abs_element(Half a) {
  return Half{magnitude_bits(flushed_if<Flush>(a))};
}
template <bool Flush, class Half> constexpr Half neg_element(Half a) {
  return Half{static_cast<uint16_t>(flushed_if<Flush>(a).bits ^ FloatTraits<Half>::sign)};
}
template <bool Flush = false, class Half> constexpr Half abs_half(Half a) {
  return canonical(abs_element<Flush>(a));
}
template <bool Flush = false, class Half> constexpr Half neg_half(Half a) {
  return canonical(neg_element<Flush>(a));
}

// Applies a function to both elements of packed operands.
template <auto function, class T, class... More> constexpr auto on_pair(Pair<T> a, More... more) {
  using Result = decltype(function(a.low, more.low...));
  return Pair<Result>{function(a.low, more.low...), function(a.high, more.high...)};
}

} // namespace ptxrewrite::emulator::semantics
