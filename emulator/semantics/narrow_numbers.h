// Numbers of 4 to 16 bits whose format is known only when a kernel is decoded, for instructions with many formats: the
// .x4 arithmetic (PTX ISA 9.4, 9.7.6) and cvt from 9.1 on. A number is converted to f64 exactly; results are rounded
// once, by way of values that are rounded to odd.
#pragma once

#include "emulator/semantics/float.h"
#include "emulator/semantics/half.h"
#include "emulator/semantics/small_floats.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

enum class NarrowKind : uint8_t { e5m2, e4m3, e3m2, e2m3, e2m1, ue8m0, s2f6, f16, bf16, tf32, f32 };

constexpr unsigned width_of(NarrowKind kind) {
  switch (kind) {
  case NarrowKind::e2m1:
    return 4;
  case NarrowKind::e5m2:
  case NarrowKind::e4m3:
  case NarrowKind::e3m2:
  case NarrowKind::e2m3:
  case NarrowKind::ue8m0:
  case NarrowKind::s2f6:
    return 8; // e3m2 and e2m3 use the lower six bits
  case NarrowKind::f16:
  case NarrowKind::bf16:
    return 16;
  case NarrowKind::tf32:
  case NarrowKind::f32:
    return 32;
  }
  return 32;
}

// The value of a code; a code of tf32 or f32 is the whole register.
constexpr double value_of(NarrowKind kind, uint32_t code) {
  switch (kind) {
  case NarrowKind::e5m2:
    return static_cast<double>(decode<e5m2_format>(code & 0xff));
  case NarrowKind::e4m3:
    return static_cast<double>(decode<e4m3_format>(code & 0xff));
  case NarrowKind::e3m2:
    return static_cast<double>(decode<e3m2_format>(code & 0x3f));
  case NarrowKind::e2m3:
    return static_cast<double>(decode<e2m3_format>(code & 0x3f));
  case NarrowKind::e2m1:
    return static_cast<double>(decode<e2m1_format>(code & 0xf));
  case NarrowKind::ue8m0:
    return static_cast<double>(decode_ue8m0(code & 0xff));
  case NarrowKind::s2f6: // two's complement, 6 bits after the binary point
    return static_cast<double>(static_cast<int8_t>(code)) / 64.0;
  case NarrowKind::f16:
    return static_cast<double>(to_float(Float16{static_cast<uint16_t>(code)}));
  case NarrowKind::bf16:
    return static_cast<double>(to_float(BFloat16{static_cast<uint16_t>(code)}));
  case NarrowKind::tf32:
  case NarrowKind::f32:
    return static_cast<double>(from_bits<float>(code));
  }
  return 0;
}

struct NarrowResult {
  NarrowKind kind = NarrowKind::e4m3;
  bool toward_zero = false;     // else to nearest, ties to even
  bool finite = false;          // .satfinite
  bool relu = false;            // negative numbers become +0
  bool positive_zero = false;   // .pzo: -0 becomes +0
  bool overflow_is_nan = false; // e4m3 arithmetic without .satfinite: the format has no infinity
};

namespace detail {

template <SmallFormat Format> constexpr uint32_t narrow_code(float value, const NarrowResult& to) {
  constexpr NarrowOptions finite = {.finite = true};
  uint32_t code = 0;
  if (to.toward_zero)
    code = to.finite ? encode<Format, NarrowRounding::toward_zero, finite>(value)
                     : encode<Format, NarrowRounding::toward_zero>(value);
  else
    code = to.finite ? encode<Format, NarrowRounding::nearest_even, finite>(value)
                     : encode<Format, NarrowRounding::nearest_even>(value);
  if (is_nan(value)) return code;
  if ((code & Format.sign()) != 0 && (to.relu || (to.positive_zero && code == Format.sign()))) return 0;
  return code;
}

// NaN becomes the largest number, as in the other formats without a NaN.
constexpr uint32_t fixed_point_code(double value, const NarrowResult& to) {
  if (value != value) return 0x7f;
  const double scaled = value * 64.0;
  if (scaled >= 127.0) return 0x7f;
  if (scaled <= 0.0 && to.relu) return 0;
  if (scaled <= -128.0) return 0x80;
  const double rounded = to.toward_zero ? __builtin_trunc(scaled) : __builtin_rint(scaled);
  return static_cast<uint8_t>(static_cast<int8_t>(rounded));
}

} // namespace detail

// The code of a value; for tf32 the whole register.
constexpr uint32_t code_of(double value, const NarrowResult& to) {
  if (to.kind == NarrowKind::s2f6) return detail::fixed_point_code(value, to);
  const float narrow = narrow_odd(value);
  constexpr float beyond_e4m3 = 464; // halfway from the largest number to the next one
  switch (to.kind) {
  case NarrowKind::e5m2:
    return detail::narrow_code<e5m2_format>(narrow, to);
  case NarrowKind::e4m3:
    if (to.overflow_is_nan && (narrow > beyond_e4m3 || narrow < -beyond_e4m3)) return e4m3_format.nan;
    return detail::narrow_code<e4m3_format>(narrow, to);
  case NarrowKind::e3m2:
    return detail::narrow_code<e3m2_format>(narrow, to);
  case NarrowKind::e2m3:
    return detail::narrow_code<e2m3_format>(narrow, to);
  case NarrowKind::e2m1:
    return detail::narrow_code<e2m1_format>(narrow, to);
  case NarrowKind::f16:
    return detail::narrow_code<f16_format>(narrow, to);
  case NarrowKind::bf16:
    return detail::narrow_code<bf16_format>(narrow, to);
  case NarrowKind::tf32:
    return is_nan(narrow) ? FloatTraits<float>::canonical_nan : detail::narrow_code<tf32_format>(narrow, to) << 13;
  case NarrowKind::ue8m0:
  case NarrowKind::s2f6:
  case NarrowKind::f32:
    break; // no results of these
  }
  return 0;
}

// 2^(scale - 127); NaN for 0xff.
constexpr double scale_of(uint32_t scale) {
  return static_cast<double>(decode_ue8m0(scale & 0xff));
}

// Flushes numbers that are subnormal in this type to zeros of their sign.
constexpr double without_subnormal(NarrowKind kind, double value) {
  const double least = kind == NarrowKind::f16 ? 0x1p-14 : 0x1p-126; // the smallest normal number
  return value < least && value > -least ? value * 0.0 : value;
}

} // namespace ptxrewrite::emulator::semantics
