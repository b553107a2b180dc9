// Two 16-bit integers in one 32-bit register: add, min, max of .u16x2 and .s16x2.
#pragma once

#include "emulator/semantics/integer.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

// `operation` on both halves; Half is int16_t or uint16_t.
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

} // namespace ptxrewrite::emulator::semantics
