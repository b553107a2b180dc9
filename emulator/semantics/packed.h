// Two 16-bit or four 8-bit integers in one 32-bit register (.u16x2 .s16x2 .u8x4 .s8x4): add, sub, neg, min, max, with
// .sat and .relu, and set. Elements are independent: no carry from one element into the next.
#pragma once

#include "emulator/semantics/integer.h"

#include <cstdint>
#include <limits>

namespace ptxrewrite::emulator::semantics {

// Applies `operation` to both halves; Half is int16_t or uint16_t.
template <class Half, class Operation> constexpr uint32_t each_half(uint32_t a, uint32_t b, Operation operation) {
  const auto low = static_cast<uint16_t>(operation(static_cast<Half>(a), static_cast<Half>(b)));
  const auto high = static_cast<uint16_t>(operation(static_cast<Half>(a >> 16), static_cast<Half>(b >> 16)));
  return uint32_t{low} | (uint32_t{high} << 16);
}
template <class Half> constexpr uint32_t add_x2(uint32_t a, uint32_t b) {
  return each_half<Half>(a, b, [](Half x, Half y) { return add(x, y); });
}
template <class Half> constexpr uint32_t min_x2(uint32_t a, uint32_t b) {
  return each_half<Half>(a, b, [](Half x, Half y) { return min(x, y); });
}
template <class Half> constexpr uint32_t max_x2(uint32_t a, uint32_t b) {
  return each_half<Half>(a, b, [](Half x, Half y) { return max(x, y); });
}
constexpr uint32_t min_relu_s16x2(uint32_t a, uint32_t b) {
  return each_half<int16_t>(a, b, [](int16_t x, int16_t y) { return relu(min(x, y)); });
}
constexpr uint32_t max_relu_s16x2(uint32_t a, uint32_t b) {
  return each_half<int16_t>(a, b, [](int16_t x, int16_t y) { return relu(max(x, y)); });
}

// Applies `operation` to all four bytes; Byte is int8_t or uint8_t.
template <class Byte, class Operation> constexpr uint32_t each_byte(uint32_t a, uint32_t b, Operation operation) {
  uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 8)
    result |= uint32_t{static_cast<uint8_t>(operation(static_cast<Byte>(a >> shift), static_cast<Byte>(b >> shift)))}
              << shift;
  return result;
}

// A sum or difference of narrow integers, clamped to their range.
template <class Narrow> constexpr Narrow clamped_to(int value) {
  constexpr auto least = static_cast<int>(std::numeric_limits<Narrow>::min());
  constexpr auto most = static_cast<int>(std::numeric_limits<Narrow>::max());
  return static_cast<Narrow>(value < least ? least : value > most ? most : value);
}
constexpr uint32_t add_sat_u32(uint32_t a, uint32_t b) {
  const uint32_t sum = a + b;
  return sum < a ? UINT32_MAX : sum;
}
template <class Half> constexpr uint32_t add_sat_x2(uint32_t a, uint32_t b) {
  return each_half<Half>(a, b, [](Half x, Half y) { return clamped_to<Half>(x + y); });
}

constexpr uint32_t add_x4(uint32_t a, uint32_t b) {
  return each_byte<uint8_t>(a, b, [](uint8_t x, uint8_t y) { return x + y; });
}
constexpr uint32_t sub_x4(uint32_t a, uint32_t b) {
  return each_byte<uint8_t>(a, b, [](uint8_t x, uint8_t y) { return x - y; });
}
template <class Byte> constexpr uint32_t add_sat_x4(uint32_t a, uint32_t b) {
  return each_byte<Byte>(a, b, [](Byte x, Byte y) { return clamped_to<Byte>(x + y); });
}
template <class Byte> constexpr uint32_t sub_sat_x4(uint32_t a, uint32_t b) {
  return each_byte<Byte>(a, b, [](Byte x, Byte y) { return clamped_to<Byte>(x - y); });
}
template <class Byte> constexpr uint32_t min_x4(uint32_t a, uint32_t b) {
  return each_byte<Byte>(a, b, [](Byte x, Byte y) { return x < y ? x : y; });
}
template <class Byte> constexpr uint32_t max_x4(uint32_t a, uint32_t b) {
  return each_byte<Byte>(a, b, [](Byte x, Byte y) { return x < y ? y : x; });
}
constexpr uint32_t min_relu_s8x4(uint32_t a, uint32_t b) {
  return max_x4<int8_t>(min_x4<int8_t>(a, b), 0);
}
constexpr uint32_t max_relu_s8x4(uint32_t a, uint32_t b) {
  return max_x4<int8_t>(max_x4<int8_t>(a, b), 0);
}
constexpr uint32_t neg_s8x4(uint32_t a) {
  return sub_x4(0, a);
}

// set: all bits of an element are one if the comparison holds, else zero.
template <class Half, class Compare> constexpr uint32_t set_x2(uint32_t a, uint32_t b) {
  return each_half<Half>(a, b, [](Half x, Half y) { return Compare()(x, y) ? 0xffff : 0; });
}
template <class Byte, class Compare> constexpr uint32_t set_x4(uint32_t a, uint32_t b) {
  return each_byte<Byte>(a, b, [](Byte x, Byte y) { return Compare()(x, y) ? 0xff : 0; });
}

} // namespace ptxrewrite::emulator::semantics
