// Conversions between integers of one lane: cvt, cvt.sat and cvt.pack.
#pragma once

#include "emulator/semantics/integer.h"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

// Extends or cuts off. The destination register, if wider than To, extends the result by To's signedness: widen().
template <class To, class From> constexpr To cvt(From a) {
  return static_cast<To>(a);
}

// The nearest number that To can hold.
template <class To, class From> constexpr To cvt_sat(From a) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_signed_v<From> && std::is_unsigned_v<To>)
    if (a < 0) return 0;
  using Common = std::conditional_t<std::is_signed_v<From> && std::is_signed_v<To>, int64_t, uint64_t>;
  if constexpr (std::is_signed_v<From> && std::is_signed_v<To>)
    if (static_cast<Common>(a) < static_cast<Common>(Limits::min())) return Limits::min();
  return static_cast<Common>(a) > static_cast<Common>(Limits::max()) ? Limits::max() : static_cast<To>(a);
}

// The bits a 16, 32 or 64-bit register holds after a value of type T went into it.
template <class Register, class T> constexpr Register widen(T value) {
  static_assert(std::is_unsigned_v<Register> && sizeof(Register) >= sizeof(T));
  return static_cast<Register>(value);
}

// a and b, each clamped to a number of `bits` bits, b in the low field; above them c moves up. Fields of 16 bits fill
// the register and leave c out.
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
