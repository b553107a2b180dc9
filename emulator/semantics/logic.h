// Bitwise logic, shifts, byte permutation and splitting of registers of one lane. `U` is unsigned.
#pragma once

#include "emulator/semantics/bits.h"
#include "emulator/semantics/integer.h"

#include <cstdint>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

template <class U> constexpr U bitwise_and(U a, U b) {
  return static_cast<U>(a & b);
}
template <class U> constexpr U bitwise_or(U a, U b) {
  return static_cast<U>(a | b);
}
template <class U> constexpr U bitwise_xor(U a, U b) {
  return static_cast<U>(a ^ b);
}
template <class U> constexpr U bitwise_not(U a) {
  return static_cast<U>(~a);
}
template <class U> constexpr U cnot(U a) {
  return a == 0 ? U{1} : U{0};
}

// Bit i of the result is bit (4a + 2b + c) of the table, where a, b, c are bit i of the operands.
constexpr uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  auto entry = [table](unsigned index) { return 0u - ((table >> index) & 1); };
  auto choose = [](uint32_t selector, uint32_t if_clear, uint32_t if_set) {
    return if_clear ^ (selector & (if_clear ^ if_set));
  };
  const uint32_t by_b_of_clear_a = choose(b, choose(c, entry(0), entry(1)), choose(c, entry(2), entry(3)));
  const uint32_t by_b_of_set_a = choose(b, choose(c, entry(4), entry(5)), choose(c, entry(6), entry(7)));
  return choose(a, by_b_of_clear_a, by_b_of_set_a);
}

// The amount is 32 bits wide for every type and clamped to the width, never masked.
template <class T> constexpr T shl(T a, uint32_t amount) {
  using M = Modular<T>;
  const T shifted = static_cast<T>(static_cast<M>(a) << (amount & (bits_of<M> - 1)));
  return amount < bits_of<T> ? shifted : T{0};
}
// Arithmetic for signed T.
template <class T> constexpr T shr(T a, uint32_t amount) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> (amount < bits_of<T> ? amount : bits_of<T> - 1));
  else
    return amount < bits_of<T> ? static_cast<T>(a >> (amount & (bits_of<T> - 1))) : T{0};
}

// b:a is a 64-bit number with b as its upper word. A left shift returns the upper word, a right shift the lower word.
template <Overflow Mode> constexpr uint32_t shf_amount(uint32_t amount) {
  if constexpr (Mode == Overflow::wrap) return amount & 31;
  return amount < 32 ? amount : 32;
}
template <Overflow Mode> constexpr uint32_t shf_l(uint32_t a, uint32_t b, uint32_t amount) {
  return static_cast<uint32_t>((((uint64_t{b} << 32) | a) << shf_amount<Mode>(amount)) >> 32);
}
template <Overflow Mode> constexpr uint32_t shf_r(uint32_t a, uint32_t b, uint32_t amount) {
  return static_cast<uint32_t>(((uint64_t{b} << 32) | a) >> shf_amount<Mode>(amount));
}

enum class PermuteMode : uint8_t { f4e, b4e, rc8, ecl, ecr, rc16 };

// Selects bytes of b:a by the four low nibbles of the selector; a nibble's top bit selects the byte's sign. In words of
// 32 bits, of which a vector of the host has twice as many as of 64.
constexpr uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> (4 * i);
    const uint32_t word = nibble & 4 ? b : a;
    const uint32_t byte = (word >> (8 * (nibble & 3))) & 0xff;
    const uint32_t sign = 0u - (byte >> 7);
    result |= ((nibble & 8 ? sign : byte) & 0xff) << (8 * i);
  }
  return result;
}
// Each special mode is one of four permutations, selected by the low two bits of the selector.
template <PermuteMode Mode> constexpr uint32_t prmt_mode(uint32_t a, uint32_t b, uint32_t selector) {
  const uint32_t k = selector & 3;
  uint32_t nibbles = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t chosen = 0;
    if constexpr (Mode == PermuteMode::f4e) chosen = k + i;                  // four bytes forwards
    if constexpr (Mode == PermuteMode::b4e) chosen = (k - i) & 7;            // four bytes backwards
    if constexpr (Mode == PermuteMode::rc8) chosen = k;                      // one byte everywhere
    if constexpr (Mode == PermuteMode::ecl) chosen = i > k ? i : k;          // edge clamp left
    if constexpr (Mode == PermuteMode::ecr) chosen = i < k ? i : k;          // edge clamp right
    if constexpr (Mode == PermuteMode::rc16) chosen = 2 * (k & 1) + (i & 1); // one half everywhere
    nibbles |= chosen << (4 * i);
  }
  return prmt(a, b, nibbles);
}

// mov between a register and its parts; element 0 is the least significant.
template <class Whole, class Part> constexpr Part element(Whole whole, unsigned index) {
  return static_cast<Part>(whole >> (bits_of<Part> * index));
}
template <class Whole, class Part> constexpr Whole with_element(Whole whole, unsigned index, Part part) {
  return static_cast<Whole>(whole | (static_cast<Whole>(part) << (bits_of<Part> * index)));
}

} // namespace ptxrewrite::emulator::semantics
