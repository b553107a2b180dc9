// Formats narrower than f32: f16, bf16, tf32, e5m2, e4m3, e3m2, e2m3, e2m1 and ue8m0, and the conversion of f32 into
// each of them in every rounding. Codes are the low bits of a uint32_t.
//
// One algorithm serves all signed formats: the bits of the f32, as an integer, are the code in a format with a longer
// fraction, so the conversion drops low bits with the right carry; subnormal results drop more bits.
#pragma once

#include "emulator/semantics/float_bits.h"
#include "emulator/semantics/rounding.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

// A binary format whose top bit is the sign. Codes from `infinity` on are infinity and NaNs; in a format without an
// infinity (e4m3 has one NaN, narrower formats none) values that are too large become the largest number.
struct SmallFormat {
  int exponent_bits = 0;
  int fraction_bits = 0;
  uint32_t max_finite = 0;
  uint32_t infinity = 0; // 0: none
  uint32_t nan = 0;      // the code for NaN; the largest number if the format has no NaN
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign() const { return uint32_t{1} << (exponent_bits + fraction_bits); }
};
inline constexpr SmallFormat f16_format = {5, 10, 0x7bff, 0x7c00, 0x7fff};
inline constexpr SmallFormat bf16_format = {8, 7, 0x7f7f, 0x7f80, 0x7fff};
inline constexpr SmallFormat tf32_format = {8, 10, 0x3fbff, 0x3fc00, 0x3ffff}; // the upper 19 bits of an f32
inline constexpr SmallFormat e5m2_format = {5, 2, 0x7b, 0x7c, 0x7f};
inline constexpr SmallFormat e4m3_format = {4, 3, 0x7e, 0, 0x7f};
inline constexpr SmallFormat e3m2_format = {3, 2, 0x1f, 0, 0x1f};
inline constexpr SmallFormat e2m3_format = {2, 3, 0x1f, 0, 0x1f};
inline constexpr SmallFormat e2m1_format = {2, 1, 0x7, 0, 0x7};

// Rounding modes of conversions: those of Rounding, .rna, and .rs with given random bits.
enum class NarrowRounding : uint8_t { nearest_even, toward_zero, down, up, nearest_away, stochastic };
constexpr NarrowRounding narrow_rounding(Rounding mode) {
  return static_cast<NarrowRounding>(mode);
}

struct NarrowOptions {
  bool finite = false;            // .satfinite: values that are too large, infinity included, become the largest number
  bool relu = false;              // negative numbers become +0
  unsigned random_bit_count = 16; // of .rs
};

namespace detail {

// The largest shift of drop_bits: it moves a significand of 24 bits below half a unit, and, where random bits are
// added, below the last random bit.
template <NarrowRounding Mode> constexpr uint32_t most_dropped = Mode == NarrowRounding::stochastic ? 24 + 16 : 25;

// Drops the `shift` low bits of `value`, rounded.
template <NarrowRounding Mode, NarrowOptions Options>
constexpr uint32_t drop_bits(uint32_t value, uint32_t shift, bool negative, uint32_t random) {
  if constexpr (Mode == NarrowRounding::stochastic) {
    // Adds the random bits to as many of the first dropped bits; a carry rounds up. If fewer bits are dropped than
    // there are random bits, the dropped bits are extended with zeros.
    const uint64_t fixed_point = (static_cast<uint64_t>(value) << Options.random_bit_count) >> shift;
    return static_cast<uint32_t>((fixed_point + random) >> Options.random_bit_count);
  }
  const uint32_t below = (uint32_t{1} << shift) - 1;
  const uint32_t kept = value >> shift;
  switch (Mode) {
  case NarrowRounding::nearest_even:
    return (value + (below >> 1) + (kept & 1)) >> shift;
  case NarrowRounding::nearest_away:
    return (value + (below >> 1) + 1) >> shift;
  case NarrowRounding::toward_zero:
    return kept;
  case NarrowRounding::down:
    return (value + (negative ? below : 0)) >> shift;
  case NarrowRounding::up:
    return (value + (negative ? 0 : below)) >> shift;
  case NarrowRounding::stochastic:
    break;
  }
  return kept;
}

} // namespace detail

// The code of `a` in Format. `random` holds the random bits of .rs.
template <SmallFormat Format, NarrowRounding Mode, NarrowOptions Options = {}>
constexpr uint32_t encode(float a, uint32_t random = 0) {
  constexpr bool saturates = Options.finite || Format.infinity == 0;
  constexpr uint32_t least_exponent = static_cast<uint32_t>(127 - Format.bias() + 1); // of f32, for normal results
  constexpr uint32_t shift = static_cast<uint32_t>(23 - Format.fraction_bits);
  const uint32_t magnitude = magnitude_bits(a);
  const bool negative = is_negative(a);
  const uint32_t exponent_field = magnitude >> 23;
  const uint32_t exponent = exponent_field != 0 ? exponent_field : 1;
  const uint32_t significand = (magnitude & 0x7fffff) | (exponent_field != 0 ? 0x800000u : 0u);
  const bool normal = exponent >= least_exponent;
  // Normal results: exponent and fraction as one number, so that a carry propagates from the fraction into the
  // exponent. Subnormal results: the significand, aligned with the last bit of the format.
  const uint32_t value = normal ? magnitude - ((least_exponent - 1) << 23) : significand;
  const uint32_t missing = normal ? 0 : least_exponent - exponent;
  constexpr uint32_t most_missing = detail::most_dropped<Mode> - shift;
  const uint32_t total = shift + (missing < most_missing ? missing : most_missing);
  // An f32 subnormal has no hidden bit; formats with the exponent range of f32 handle it correctly as `normal`.
  const uint32_t rounded = detail::drop_bits<Mode, Options>(value, total, negative, random);

  constexpr bool overflow_to_max = Mode == NarrowRounding::toward_zero;
  const bool toward_zero_here = (Mode == NarrowRounding::down && !negative) || (Mode == NarrowRounding::up && negative);
  const bool finite_source = magnitude < FloatTraits<float>::infinity;
  uint32_t code = rounded < Format.max_finite ? rounded : Format.max_finite;
  if constexpr (!saturates) {
    const bool stays_finite = finite_source & (overflow_to_max | toward_zero_here);
    code = ((rounded > Format.max_finite) & !stays_finite) ? Format.infinity : code;
  }
  const uint32_t sign = negative ? Format.sign() : 0;
  if constexpr (Options.relu)
    code = negative ? 0 : code;
  else
    code |= sign;
  return is_nan(a) ? Format.nan : code;
}

// The exact value of a code of at most 16 bits. f16 codes of NaNs give an unspecified NaN.
template <SmallFormat Format> constexpr float decode(uint32_t code) {
  // Read as bits of an f32, the code is too small by a factor 2^(f32 bias - bias), also if it is subnormal.
  constexpr int shift = 23 - Format.fraction_bits;
  constexpr float scale = from_bits<float>(static_cast<uint32_t>(254 - Format.bias()) << 23);
  const uint32_t magnitude = code & (Format.sign() - 1);
  uint32_t bits = to_bits(from_bits<float>(magnitude << shift) * scale);
  if constexpr (Format.infinity != 0)
    bits |= magnitude >= Format.infinity ? FloatTraits<float>::infinity : 0;
  else if constexpr (Format.nan != Format.max_finite)
    bits = magnitude > Format.max_finite ? FloatTraits<float>::canonical_nan : bits;
  bits |= (code & Format.sign()) != 0 ? FloatTraits<float>::sign : 0;
  return from_bits<float>(bits);
}

// ue8m0: the power of two 2^(code - 127), 0xff is NaN. The sign of the source is ignored; zero and values up to 2^-127
// become code 0.
template <bool Up, bool Finite> constexpr uint32_t encode_ue8m0(float a) {
  const uint32_t magnitude = magnitude_bits(a);
  const uint32_t exponent = magnitude >> 23;
  const uint32_t fraction = magnitude & 0x7fffff;
  const bool above = exponent == 0 ? fraction > 0x400000 : fraction != 0;
  const uint32_t code = exponent + (Up && above ? 1 : 0);
  return is_nan(a) ? 0xff : code < 0xff ? code : Finite ? 0xfe : 0xff;
}
constexpr float decode_ue8m0(uint32_t code) {
  const uint32_t power = code == 0 ? 0x400000u : code << 23;
  return code == 0xff ? canonical_nan<float>() : from_bits<float>(power);
}

} // namespace ptxrewrite::emulator::semantics
