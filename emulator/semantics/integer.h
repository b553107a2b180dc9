// Integer arithmetic of one lane, as PTX defines it: wrapping, total, without undefined behaviour for any operand.
//
// Every function here is pure and nearly free of branches, so that a loop over the 32 lanes of a warp vectorises. `T`
// is int16_t ... uint64_t, the instruction's type; names are the mnemonics with `_` for the dot.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxrewrite::emulator::semantics {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

// The type in which arithmetic on T wraps without undefined behaviour: unsigned, and not promoted to int.
template <class T> using Modular = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

// The type twice as wide as T, of the same signedness.
template <class T> struct WiderType;
template <> struct WiderType<int8_t> { using type = int16_t; };
template <> struct WiderType<uint8_t> { using type = uint16_t; };
template <> struct WiderType<int16_t> { using type = int32_t; };
template <> struct WiderType<uint16_t> { using type = uint32_t; };
template <> struct WiderType<int32_t> { using type = int64_t; };
template <> struct WiderType<uint32_t> { using type = uint64_t; };
template <> struct WiderType<int64_t> { using type = Int128; };
template <> struct WiderType<uint64_t> { using type = Uint128; };
template <class T> using Wider = typename WiderType<T>::type;

template <class T> constexpr unsigned bits_of = 8 * sizeof(T);
template <class T> constexpr T all_ones = static_cast<T>(~Modular<T>{0});

template <class T> constexpr T add(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) + static_cast<Modular<T>>(b));
}
template <class T> constexpr T sub(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) - static_cast<Modular<T>>(b));
}
template <class T> constexpr T neg(T a) {
  return sub(T{0}, a);
}
// The most negative number is its own absolute value.
template <class T> constexpr T abs(T a) {
  return a < 0 ? neg(a) : a;
}
template <class T> constexpr T min(T a, T b) {
  return a < b ? a : b;
}
template <class T> constexpr T max(T a, T b) {
  return a > b ? a : b;
}
template <class T> constexpr T relu(T a) {
  return a < 0 ? T{0} : a;
}

// Clamps to the range of Narrow.
template <class Narrow, class From> constexpr Narrow saturate(From value) {
  constexpr From low = static_cast<From>(std::numeric_limits<Narrow>::min());
  constexpr From high = static_cast<From>(std::numeric_limits<Narrow>::max());
  return static_cast<Narrow>(value < low ? low : value > high ? high : value);
}

constexpr int32_t add_sat(int32_t a, int32_t b) {
  return saturate<int32_t>(int64_t{a} + b);
}
constexpr int32_t sub_sat(int32_t a, int32_t b) {
  return saturate<int32_t>(int64_t{a} - b);
}

template <class T> constexpr T mul_lo(T a, T b) {
  return static_cast<T>(static_cast<Modular<T>>(a) * static_cast<Modular<T>>(b));
}
template <class T> constexpr Wider<T> mul_wide(T a, T b) {
  return static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b));
}
// int16_t x int16_t is computed in 32 bits and uint16_t x uint16_t fits there: no intermediate overflow.
template <class T> constexpr T mul_hi(T a, T b) {
  return static_cast<T>(mul_wide(a, b) >> bits_of<T>);
}
template <class T> constexpr T mad_lo(T a, T b, T c) {
  return add(mul_lo(a, b), c);
}
template <class T> constexpr T mad_hi(T a, T b, T c) {
  return add(mul_hi(a, b), c);
}
template <class T> constexpr Wider<T> mad_wide(T a, T b, Wider<T> c) {
  return add(mul_wide(a, b), c);
}
constexpr int32_t mad_hi_sat(int32_t a, int32_t b, int32_t c) {
  return add_sat(mul_hi(a, b), c);
}

// The 48-bit product of the low 24 bits of each source, sign-extended from bit 23 for int32_t.
template <class T> constexpr Wider<T> product24(T a, T b) {
  static_assert(sizeof(T) == 4);
  auto low24 = [](T value) { return static_cast<T>(static_cast<T>(static_cast<uint32_t>(value) << 8) >> 8); };
  return mul_wide(low24(a), low24(b));
}
template <class T> constexpr T mul24_lo(T a, T b) {
  return static_cast<T>(product24(a, b));
}
// Bits 47:16 of the product.
template <class T> constexpr T mul24_hi(T a, T b) {
  return static_cast<T>(product24(a, b) >> 16);
}
template <class T> constexpr T mad24_lo(T a, T b, T c) {
  return add(mul24_lo(a, b), c);
}
template <class T> constexpr T mad24_hi(T a, T b, T c) {
  return add(mul24_hi(a, b), c);
}
constexpr int32_t mad24_hi_sat(int32_t a, int32_t b, int32_t c) {
  return add_sat(mul24_hi(a, b), c);
}

// c + |a - b|; a and b are compared as T, the difference wraps.
template <class T> constexpr T sad(T a, T b, T c) {
  return add(c, a < b ? sub(b, a) : sub(a, b));
}

// a / b rounded towards zero, for b other than 0; the most negative number divided by -1 wraps.
//
// Hosts divide vectors of floats but not of integers. The floating-point quotient of two integers of at most n bits is
// never rounded up to an integer above the exact quotient: that integer is at least 1 / b away, a relative distance of
// more than 2^-(n+1), and doubles have an error of 2^-53, floats of 2^-24.
template <class T> constexpr T quotient(T a, T b) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<T>(static_cast<int32_t>(static_cast<float>(a) / static_cast<float>(b)));
  } else if constexpr (sizeof(T) == 4) {
    // Adding 1.5 * 2^52 puts an integer, modulo 2^32, into the low bits of the sum.
    const double truncated = __builtin_trunc(static_cast<double>(a) / static_cast<double>(b));
    return static_cast<T>(static_cast<uint32_t>(std::bit_cast<uint64_t>(truncated + 0x1.8p52)));
  } else {
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return neg(a);
    return static_cast<T>(a / b);
  }
}

// Division by zero has no defined result in PTX; here it gives all ones, as ptxas folds it.
template <class T> constexpr T div(T a, T b) {
  const T result = quotient(a, b == 0 ? T{1} : b);
  return b == 0 ? all_ones<T> : result;
}
// The sign is that of the dividend. Division by zero gives all ones, as ptxas folds it.
template <class T> constexpr T rem(T a, T b) {
  const T result = sub(a, mul_lo(quotient(a, b == 0 ? T{1} : b), b));
  return b == 0 ? all_ones<T> : result;
}

// c + the dot product of four bytes with four bytes; A and B (int32_t or uint32_t) are the signedness of the bytes.
template <class A, class B> constexpr uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c) {
  using ByteA = std::conditional_t<std::is_signed_v<A>, int8_t, uint8_t>;
  using ByteB = std::conditional_t<std::is_signed_v<B>, int8_t, uint8_t>;
  for (unsigned i = 0; i < 32; i += 8)
    c += static_cast<uint32_t>(int32_t{static_cast<ByteA>(a >> i)} * int32_t{static_cast<ByteB>(b >> i)});
  return c;
}

// c + the dot product of the two halves of a with the low or the high two bytes of b.
template <class A, class B, bool High> constexpr uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c) {
  using HalfA = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
  using ByteB = std::conditional_t<std::is_signed_v<B>, int8_t, uint8_t>;
  const uint32_t bytes = High ? b >> 16 : b;
  for (unsigned i = 0; i < 2; ++i)
    c += static_cast<uint32_t>(int32_t{static_cast<HalfA>(a >> (16 * i))} *
                               int32_t{static_cast<ByteB>(bytes >> (8 * i))});
  return c;
}

// clmad: multiplication of polynomials over GF(2), with bits as coefficients, and an addition without carries.
constexpr uint64_t carry_less_low(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  for (unsigned i = 0; i < 64; ++i)
    product ^= (b >> i & 1) != 0 ? a << i : 0;
  return product;
}
constexpr uint64_t carry_less_high(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  for (unsigned i = 1; i < 64; ++i)
    product ^= (b >> i & 1) != 0 ? a >> (64 - i) : 0;
  return product;
}

} // namespace ptxrewrite::emulator::semantics
