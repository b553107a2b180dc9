// cvt of one lane with a float as source or destination: between f16, bf16, f32, f64, to and from integers, to tf32,
// and the packed conversions to and from 8, 6 and 4-bit floats.
//
// Two-source conversions put the first source into the upper half. Where ptxas folds a conversion, results equal its
// folding, except cvt.rna.satfinite.tf32 of NaN: ptxas folds some NaNs to numbers, the manual requires a NaN.
#pragma once

#include "emulator/semantics/float.h"
#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/half.h"
#include "emulator/semantics/rounding.h"
#include "emulator/semantics/small_floats.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

// --- to integral values and integers ---

enum class IntegerRounding : uint8_t { nearest_even, toward_zero, down, up };

template <IntegerRounding Mode, class T> inline T round_to_integral(T a) {
  static_assert(std::is_floating_point_v<T>);
  switch (Mode) {
  case IntegerRounding::nearest_even:
    return sizeof(T) == 4 ? static_cast<T>(__builtin_rintf(static_cast<float>(a))) : static_cast<T>(__builtin_rint(a));
  case IntegerRounding::toward_zero:
    return sizeof(T) == 4 ? static_cast<T>(__builtin_truncf(static_cast<float>(a)))
                          : static_cast<T>(__builtin_trunc(a));
  case IntegerRounding::down:
    return sizeof(T) == 4 ? static_cast<T>(__builtin_floorf(static_cast<float>(a)))
                          : static_cast<T>(__builtin_floor(a));
  case IntegerRounding::up:
    return sizeof(T) == 4 ? static_cast<T>(__builtin_ceilf(static_cast<float>(a))) : static_cast<T>(__builtin_ceil(a));
  }
  return a;
}

// Same-size conversions with .rni, .rzi, .rmi, .rpi. The sign of zero is kept.
template <IntegerRounding Mode, bool Flush = false> inline float cvt_integral(float a) {
  return canonical(round_to_integral<Mode>(flushed_if<Flush>(a)));
}
template <IntegerRounding Mode> inline double cvt_integral(double a) {
  return quieted(round_to_integral<Mode>(a));
}
template <IntegerRounding Mode> inline Float16 cvt_integral(Float16 a) {
  return to_half<Float16>(round_to_integral<Mode>(to_float(a)));
}
template <IntegerRounding Mode> inline BFloat16 cvt_integral(BFloat16 a) {
  return to_half<BFloat16>(round_to_integral<Mode>(to_float(a)));
}

namespace detail {

// Converts a float whose value is an integer within the range of Int. Narrower types are converted by way of int32_t,
// the type for which hosts have vector instructions.
template <class Int, class Float> constexpr Int exact_integer(Float a) {
  if constexpr (std::is_unsigned_v<Int> && sizeof(Int) >= 4) {
    using Signed = std::make_signed_t<Int>;
    constexpr Int top = Int{1} << (8 * sizeof(Int) - 1);
    const bool high = a >= static_cast<Float>(top);
    const auto low = static_cast<Int>(static_cast<Signed>(high ? a - static_cast<Float>(top) : a));
    return low ^ (high ? top : 0);
  } else if constexpr (sizeof(Int) == 8) {
    return static_cast<Int>(a);
  } else {
    return static_cast<Int>(static_cast<int32_t>(a));
  }
}

} // namespace detail

// Clamps to the range of Int. NaN gives zero, or, if the source is an f64 or the integer has 64 bits, the number with
// only the highest bit set.
template <class Int, IntegerRounding Mode, bool Flush = false, class Float> inline Int float_to_int(Float a) {
  using Limits = std::numeric_limits<Int>;
  constexpr bool nan_is_zero = !std::is_same_v<Float, double> && sizeof(Int) < 8;
  constexpr Int nan_value =
      nan_is_zero ? Int{0} : static_cast<Int>(std::make_unsigned_t<Int>{1} << (8 * sizeof(Int) - 1));
  using Wide = std::conditional_t<std::is_same_v<Float, double>, double, float>;
  Wide value = 0;
  if constexpr (std::is_same_v<Float, Wide>)
    value = round_to_integral<Mode>(flushed_if<Flush>(a));
  else
    value = round_to_integral<Mode>(to_float(a));
  constexpr Wide least = static_cast<Wide>(Limits::min());
  constexpr Wide beyond = static_cast<Wide>((Limits::max() >> 1) + 1) * 2;
  const bool low = value < least;
  const bool high = value >= beyond;
  Int result = detail::exact_integer<Int>(((value >= least) & !high) ? value : Wide{0});
  result = low ? Limits::min() : result;
  result = high ? Limits::max() : result;
  return is_nan(value) ? nan_value : result;
}

// --- from integers ---

namespace detail {

template <class Int> constexpr uint64_t absolute(Int a) {
  const auto wide = static_cast<uint64_t>(static_cast<int64_t>(a));
  if constexpr (std::is_signed_v<Int>)
    return a < 0 ? 0 - wide : wide;
  else
    return static_cast<uint64_t>(a);
}

// The number of low bits of a 64-bit number that do not fit into an f64.
constexpr int excess_bits(uint64_t magnitude) {
  const int excess = std::bit_width(magnitude) - 53;
  return excess > 0 ? excess : 0;
}

// Any integer as f64, rounded to odd.
template <class Int> constexpr double integer_odd(Int a) {
  if constexpr (sizeof(Int) < 8) {
    return static_cast<double>(a);
  } else {
    const uint64_t magnitude = absolute(a);
    const int excess = excess_bits(magnitude);
    const uint64_t kept = magnitude >> excess << excess;
    const uint64_t sticky = static_cast<uint64_t>(kept != magnitude) << excess;
    const auto value = static_cast<double>(kept | sticky);
    return a < 0 ? -value : value;
  }
}

} // namespace detail

template <class Mode, class Int> constexpr float int_to_f32(Int a) {
  if constexpr (Mode::nearest && (sizeof(Int) < 4 || std::is_signed_v<Int> || sizeof(Int) == 8))
    return detail::finish_nearest<Mode>(static_cast<float>(a));
  else
    return detail::finish<Mode>(detail::integer_odd(a));
}
template <Rounding Mode, class Int> constexpr double int_to_f64(Int a) {
  if constexpr (sizeof(Int) < 8 || Mode == Rounding::nearest_even) {
    return static_cast<double>(a);
  } else {
    const uint64_t magnitude = detail::absolute(a);
    const int excess = detail::excess_bits(magnitude);
    const uint64_t kept = magnitude >> excess << excess;
    const bool negative = a < 0;
    const bool away = kept != magnitude && (negative ? Mode == Rounding::down : Mode == Rounding::up);
    const double value = static_cast<double>(kept) + (away ? static_cast<double>(uint64_t{1} << excess) : 0.0);
    return negative ? -value : value;
  }
}
template <class Half, Rounding Mode, class Int> constexpr Half int_to_half(Int a) {
  return to_half<Half, narrow_rounding(Mode)>(narrow_odd(detail::integer_odd(a)));
}

// --- between floats ---

template <class Mode = FloatMode<>> constexpr float f64_to_f32(double a) {
  float result = narrow<Mode::rounding>(a);
  if constexpr (Mode::flush)
    result = detail::flushed_if_tiny(result, narrow<Mode::rounding>(a * static_cast<double>(detail::tiny_scale)));
  if constexpr (Mode::saturate) result = saturated(result);
  return quieted(result);
}
template <bool Flush = false> constexpr double f32_to_f64(float a) {
  return static_cast<double>(flushed_if<Flush>(a));
}
template <bool Flush = false> constexpr float f32_to_f32(float a) {
  return quieted(flushed_if<Flush>(a));
}
// Halves to f32 and f64 are exact. .ftz flushes values that are subnormal in f32, which bf16 sources can be.
template <bool Flush = false, class Half> constexpr float half_to_f32(Half a) {
  return canonical(flushed_if<Flush>(to_float(a)));
}
template <class Half> constexpr double half_to_f64(Half a) {
  return static_cast<double>(canonical(to_float(a)));
}
template <class Half, Rounding Mode, bool Flush = false> constexpr Half f32_to_half(float a) {
  return to_half<Half, narrow_rounding(Mode)>(flushed_if<Flush>(a));
}
template <class Half, Rounding Mode> constexpr Half f64_to_half(double a) {
  return to_half<Half, narrow_rounding(Mode)>(narrow_odd(a));
}
template <class To, Rounding Mode, class From> constexpr To half_to_half(From a) {
  return to_half<To, narrow_rounding(Mode)>(to_float(a));
}

// tf32 is in the upper 19 bits of a 32-bit register.
template <NarrowRounding Mode, NarrowOptions Options = {}> constexpr uint32_t f32_to_tf32(float a) {
  const uint32_t code = encode<tf32_format, Mode, Options>(a) << 13;
  if constexpr (Mode == NarrowRounding::nearest_away && !Options.finite) {
    // NaN keeps the upper bits of its payload, as ptxas folds it; if all of them are zero, it becomes quiet.
    const uint32_t cut = to_bits(a) & 0xffffe000;
    const uint32_t kept = (cut & 0x7fffff) != 0 ? cut : cut | FloatTraits<float>::quiet;
    return is_nan(a) ? kept : code;
  }
  return is_nan(a) ? FloatTraits<float>::canonical_nan : code;
}

// --- packs of two and four ---

template <class Half, NarrowRounding Mode, NarrowOptions Options = {}>
constexpr Pair<Half> pack_halves(float a, float b) {
  return {to_half<Half, Mode, Options>(b), to_half<Half, Mode, Options>(a)};
}
// .rs: the random bits of `a` lie in the upper half of `random`, those of b in the lower one; f16 uses 13 of 16.
template <class Half, bool Finite, bool Relu>
constexpr Pair<Half> pack_halves_stochastic(float a, float b, uint32_t random) {
  constexpr unsigned count = format_of<Half>.exponent_bits == 5 ? 13 : 16;
  constexpr NarrowOptions options = {.finite = Finite, .relu = Relu, .random_bit_count = count};
  constexpr uint32_t mask = (1u << count) - 1;
  return {to_half<Half, NarrowRounding::stochastic, options>(b, random & mask),
          to_half<Half, NarrowRounding::stochastic, options>(a, (random >> 16) & mask)};
}

// Codes of 8 and 6 bits take a byte each, codes of 4 bits take 4 bits.
template <SmallFormat Format> constexpr unsigned code_stride = Format.exponent_bits + Format.fraction_bits == 3 ? 4 : 8;
template <SmallFormat Format> using PackOfTwo = std::conditional_t<code_stride<Format> == 4, uint8_t, uint16_t>;
template <SmallFormat Format> using PackOfFour = std::conditional_t<code_stride<Format> == 4, uint16_t, uint32_t>;

template <SmallFormat Format, bool Relu> constexpr PackOfTwo<Format> pack_small(float a, float b) {
  constexpr NarrowOptions options = {.finite = true, .relu = Relu};
  const uint32_t high = encode<Format, NarrowRounding::nearest_even, options>(a);
  const uint32_t low = encode<Format, NarrowRounding::nearest_even, options>(b);
  return static_cast<PackOfTwo<Format>>(high << code_stride<Format> | low);
}
template <SmallFormat Format, bool Relu, class Half> constexpr PackOfTwo<Format> pack_small(Pair<Half> a) {
  return pack_small<Format, Relu>(to_float(a.high), to_float(a.low));
}
// Four sources, the first in the highest field. Two sources share 16 random bits. For codes in bytes the first two use
// the upper half of `random`; for 4-bit codes the first two use the upper byte of each half.
template <SmallFormat Format, bool Relu>
constexpr PackOfFour<Format> pack_small_stochastic(float a, float b, float e, float f, uint32_t random) {
  constexpr unsigned stride = code_stride<Format>;
  uint32_t first = random >> 16;
  uint32_t second = random & 0xffff;
  if constexpr (stride == 4) {
    first = ((random >> 16) & 0xff00) | ((random >> 8) & 0xff);
    second = ((random >> 8) & 0xff00) | (random & 0xff);
  }
  auto code = [](float value, uint32_t bits) {
    constexpr NarrowOptions options = {.finite = true, .relu = Relu};
    return encode<Format, NarrowRounding::stochastic, options>(value, bits);
  };
  return static_cast<PackOfFour<Format>>(code(a, first) << 3 * stride | code(b, first) << 2 * stride |
                                         code(e, second) << stride | code(f, second));
}
template <SmallFormat Format, bool Relu> constexpr Float16x2 unpack_small(PackOfTwo<Format> a) {
  // All values of these formats are values of f16.
  auto value = [](uint32_t code) {
    constexpr NarrowOptions options = {.relu = Relu};
    return to_half<Float16, NarrowRounding::nearest_even, options>(decode<Format>(code));
  };
  constexpr uint32_t mask = 2 * Format.sign() - 1;
  return {value(a & mask), value((a >> code_stride<Format>)&mask)};
}

template <bool Up, bool Finite> constexpr uint16_t pack_ue8m0(float a, float b) {
  return static_cast<uint16_t>(encode_ue8m0<Up, Finite>(a) << 8 | encode_ue8m0<Up, Finite>(b));
}
template <bool Up, bool Finite> constexpr uint16_t pack_ue8m0(BFloat16x2 a) {
  return pack_ue8m0<Up, Finite>(to_float(a.high), to_float(a.low));
}
constexpr BFloat16x2 unpack_ue8m0(uint16_t a) {
  return {to_half<BFloat16>(decode_ue8m0(a & 0xff)), to_half<BFloat16>(decode_ue8m0(a >> 8))};
}

} // namespace ptxrewrite::emulator::semantics
