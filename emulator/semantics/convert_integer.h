// Conversions between integers of one lane: cvt, cvt.sat and cvt.pack.
#pragma once

#include "emulator/semantics/integer.h"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

// Extends or truncates. A destination register wider than To is filled by widen(), which extends by To's signedness.
template <class To, class From> constexpr To cvt(From a) {
  return static_cast<To>(a);
}

// Clamps to the range of To.
template <class To, class From> constexpr To cvt_sat(From a) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_signed_v<From> && std::is_unsigned_v<To>)
    if (a < 0) return 0;
  using Common = std::conditional_t<std::is_signed_v<From> && std::is_signed_v<To>, int64_t, uint64_t>;
  if constexpr (std::is_signed_v<From> && std::is_signed_v<To>)
    if (static_cast<Common>(a) < static_cast<Common>(Limits::min())) return Limits::min();
  return static_cast<Common>(a) > static_cast<Common>(Limits::max()) ? Limits::max() : static_cast<To>(a);
}

// The bits of a 16, 32 or 64-bit register after a value of type T is written to it.
template <class Register, class T> constexpr Register widen(T value) {
  static_assert(std::is_unsigned_v<Register> && sizeof(Register) >= sizeof(T));
  return static_cast<Register>(value);
}

// Packs a and b, each clamped to `Bits` bits, b in the low field; c is shifted left above them. Fields of 16 bits fill
// the register and leave no room for c.
template <unsigned Bits, bool Signed> constexpr uint32_t cvt_pack(int32_t a, int32_t b, uint32_t c) {
  constexpr int32_t low = Signed ? -(1 << (Bits - 1)) : 0;
  constexpr int32_t high = Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
  constexpr uint32_t mask = (1u << Bits) - 1;
  const uint32_t upper = static_cast<uint32_t>(max(low, min(high, a))) & mask;
  const uint32_t lower = static_cast<uint32_t>(max(low, min(high, b))) & mask;
  const uint32_t fields = (upper << Bits) | lower;
  if constexpr (Bits == 16) return fields;
  return (c << (2 * Bits % 32)) | fields;
}

} // namespace ptxrewrite::emulator::semantics
