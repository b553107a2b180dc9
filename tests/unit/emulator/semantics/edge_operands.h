// Boundary operands of integer operations, and helpers to state results with unbounded numbers.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

namespace ptxrewrite::test {

__extension__ typedef __int128 Big; // wide enough for every sum and product of 64-bit numbers, one sign apart

// Zero, ones, powers of two and their neighbours, the type's limits, and some patterns without structure.
template <class T> std::vector<T> edge_operands() {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned width = 8 * sizeof(T);
  std::vector<T> result;
  for (unsigned i = 0; i<width; i += width> 16 ? 5 : 3)
    for (int delta : {-1, 0, 1})
      result.push_back(static_cast<T>((U{1} << i) + static_cast<U>(delta)));
  static constexpr uint64_t patterns[] = {0x8000000000000000u,
                                          0x7fffffffffffffffu,
                                          0xffffffffffffffffu,
                                          0x80000000u,
                                          0x7fffffffu,
                                          0xfedcba9876543210u,
                                          0x123456789abcdef0u,
                                          0x8000u,
                                          0x7fffu,
                                          0xff00ff00ff00ff00u,
                                          0x80u,
                                          0x7fu,
                                          0x5a5a5a5aa5a5a5a5u,
                                          0xfffffffffffffffeu,
                                          0x8000000000000001u,
                                          0x80000001u,
                                          0x8001u};
  for (uint64_t bits : patterns) {
    result.push_back(static_cast<T>(bits));
    result.push_back(static_cast<T>(bits >> (64 - width)));
  }
  return result;
}

// The low bits of an unbounded number.
template <class T> T wrapped(Big value) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(value));
}

template <class T> Big clamped(Big value) {
  constexpr unsigned width = 8 * sizeof(T);
  const Big low = std::is_signed_v<T> ? -(Big{1} << (width - 1)) : Big{0};
  const Big high = (Big{1} << (std::is_signed_v<T> ? width - 1 : width)) - 1;
  return value < low ? low : value > high ? high : value;
}

template <class T> bool bit(T value, uint64_t index) {
  return index < 8 * sizeof(T) && ((static_cast<uint64_t>(value) >> index) & 1) != 0;
}

} // namespace ptxrewrite::test
