// Counting, finding and moving bits of one lane: popc, clz, bfind, brev, fns, bfe, bfi, szext, bmsk.
#pragma once

#include "emulator/semantics/integer.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

constexpr uint32_t not_found = 0xffffffff; // the result of bfind and fns if there is no such bit

// The treatment of an amount beyond the register's width: clamped to the width, or taken modulo 32.
enum class Overflow : uint8_t { clamp, wrap };

template <class U> constexpr uint32_t popc(U a) {
  return static_cast<uint32_t>(std::popcount(a));
}
template <class U> constexpr uint32_t clz(U a) {
  return static_cast<uint32_t>(std::countl_zero(a));
}

// The position of the highest bit that differs from the sign bit (from 0 for unsigned T).
template <class T> constexpr uint32_t bfind(T a) {
  using U = std::make_unsigned_t<T>;
  const U pattern = static_cast<U>(a < 0 ? ~a : a);
  return static_cast<uint32_t>(bits_of<T> - 1) - clz(pattern); // wraps to not_found if there is no such bit
}
// The left shift that moves that bit to the top of the register.
template <class T> constexpr uint32_t bfind_shiftamt(T a) {
  using U = std::make_unsigned_t<T>;
  const U pattern = static_cast<U>(a < 0 ? ~a : a);
  return pattern == 0 ? not_found : clz(pattern);
}

template <class U> constexpr U brev(U a) {
  auto swap = [&a](U odd, unsigned distance) { a = static_cast<U>(((a >> distance) & odd) | ((a & odd) << distance)); };
  swap(static_cast<U>(0x5555555555555555), 1);
  swap(static_cast<U>(0x3333333333333333), 2);
  swap(static_cast<U>(0x0f0f0f0f0f0f0f0f), 4);
  swap(static_cast<U>(0x00ff00ff00ff00ff), 8);
  swap(static_cast<U>(0x0000ffff0000ffff), 16);
  if constexpr (sizeof(U) == 8) swap(static_cast<U>(0x00000000ffffffff), 32);
  return a;
}

// The position of the |offset|-th set bit counted from `base`, upwards for a positive offset and downwards for a
// negative one, including the bit at `base`; offset 0 tests that bit alone. A base beyond 31 is undefined in PTX:
// not_found.
constexpr uint32_t fns(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return not_found;
  if (offset == 0) return (mask >> base) & 1 ? base : not_found;
  uint32_t wanted = offset < 0 ? 0u - static_cast<uint32_t>(offset) : static_cast<uint32_t>(offset);
  for (uint32_t position = base; position<32; position += offset> 0 ? 1u : ~0u) // below 0 it wraps; the loop ends
    if ((mask >> position) & 1 && --wanted == 0) return position;
  return not_found;
}

// Positions and lengths of bfe and bfi. The manual uses their low 8 bits. For 64-bit types, which no GPU handles in one
// instruction, the code that ptxas generates uses all 32 bits, and so does this function.
template <class T> constexpr uint32_t field_amount(uint32_t amount) {
  return sizeof(T) == 8 ? amount : amount & 0xff;
}

// The `length` bits of a from `position` upwards, extended by T's signedness; positions beyond the top of a read as
// zeros or as copies of the sign.
template <class T> constexpr T bfe(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t width = bits_of<T>;
  position = field_amount<T>(position);
  length = field_amount<T>(length);
  T field;
  if constexpr (std::is_signed_v<T>)
    field = static_cast<T>(a >> (position < width ? position : width - 1));
  else
    field = position < width ? static_cast<T>(a >> position) : T{0};
  const uint32_t unused = length < width ? width - length : 0;
  const T extended =
      static_cast<T>(static_cast<T>(static_cast<U>(field) << (unused & (width - 1))) >> (unused & (width - 1)));
  return length == 0 ? T{0} : extended;
}

// b with `length` bits from `position` upwards replaced by the low bits of a; bits beyond the top are dropped.
template <class U> constexpr U bfi(U a, U b, uint32_t position, uint32_t length) {
  constexpr uint32_t width = bits_of<U>;
  position = field_amount<U>(position);
  length = field_amount<U>(length);
  const U field = length < width ? static_cast<U>((U{1} << (length & (width - 1))) - 1) : all_ones<U>;
  const uint32_t shift = position & (width - 1);
  const U mask = position < width ? static_cast<U>(field << shift) : U{0};
  return static_cast<U>((b & ~mask) | (static_cast<U>(a << shift) & mask));
}

// The low `length` bits of a, extended by T's signedness: length 0 gives 0, length 32 or more (clamped) gives a.
template <class T, Overflow Mode> constexpr T szext(T a, uint32_t length) {
  static_assert(sizeof(T) == 4);
  if constexpr (Mode == Overflow::wrap) length &= 31;
  return bfe(a, 0, length < 32 ? length : 32);
}

// A mask of `length` ones from `position` upwards.
template <Overflow Mode> constexpr uint32_t bmsk(uint32_t position, uint32_t length) {
  if constexpr (Mode == Overflow::wrap) {
    position &= 31;
    length &= 31;
  }
  const uint32_t field = length < 32 ? (1u << (length & 31)) - 1 : ~0u;
  return position < 32 ? field << (position & 31) : 0;
}

} // namespace ptxrewrite::emulator::semantics
