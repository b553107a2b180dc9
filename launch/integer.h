// Exact 128-bit integers, with which expressions of launch files and launch predicates are computed. Every operation
// reports a result that does not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ptxrewrite::launch {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

constexpr Int128 int128_max = Int128(~UInt128(0) >> 1);
constexpr Int128 int128_min = -int128_max - 1;

inline std::string to_string(Int128 value) {
  UInt128 rest = value < 0 ? -UInt128(value) : UInt128(value);
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest != 0);
  return value < 0 ? "-" + digits : digits;
}

inline std::optional<Int128> checked_add(Int128 a, Int128 b) {
  Int128 sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
inline std::optional<Int128> checked_subtract(Int128 a, Int128 b) {
  Int128 difference;
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}
inline std::optional<Int128> checked_multiply(Int128 a, Int128 b) {
  Int128 product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}
// a * 2^b; nullopt if b < 0.
inline std::optional<Int128> checked_shift_left(Int128 a, Int128 b) {
  if (b < 0) return std::nullopt;
  if (a == 0) return Int128(0);
  if (b > 126) return std::nullopt;
  return checked_multiply(a, Int128(1) << static_cast<int>(b));
}

// The low `bits` bits of a value, read as a signed or an unsigned number; 1 <= bits <= 64.
constexpr Int128 zero_extended(Int128 value, unsigned bits) {
  return Int128(UInt128(value) & ((UInt128(1) << bits) - 1));
}
constexpr Int128 sign_extended(Int128 value, unsigned bits) {
  Int128 low = zero_extended(value, bits);
  return (low >> (bits - 1)) != 0 ? low - (Int128(1) << bits) : low;
}

} // namespace ptxrewrite::launch
