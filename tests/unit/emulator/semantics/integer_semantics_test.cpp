// Integer arithmetic against unbounded numbers, long multiplication and long division.
#include "emulator/semantics/integer.h"
#include "tests/unit/emulator/semantics/edge_operands.h"

#include <doctest/doctest.h>

#include <random>

namespace ptxrewrite::emulator::semantics::integer_semantics_test {
namespace {

using test::Big;
using test::clamped;
using test::edge_operands;
using test::wrapped;

// The product's upper half by schoolbook multiplication of half-width digits, corrected for the signs.
template <class T> T long_multiplication_high(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned width = 8 * sizeof(T);
  constexpr unsigned half = width / 2;
  constexpr uint64_t digit = (uint64_t{1} << half) - 1;
  const uint64_t x = static_cast<U>(a);
  const uint64_t y = static_cast<U>(b);
  const uint64_t low = (x & digit) * (y & digit);
  const uint64_t cross_1 = (x >> half) * (y & digit) + (low >> half);
  const uint64_t cross_2 = (x & digit) * (y >> half) + (cross_1 & digit);
  uint64_t high = (x >> half) * (y >> half) + (cross_1 >> half) + (cross_2 >> half);
  if (a < 0) high -= y;
  if (b < 0) high -= x;
  return static_cast<T>(high);
}

// Restoring division, bit by bit, of magnitudes.
struct Quotient {
  uint64_t quotient;
  uint64_t remainder;
};
Quotient long_division(uint64_t dividend, uint64_t divisor) {
  Quotient result{0, 0};
  for (int i = 63; i >= 0; --i) {
    const bool carry = result.remainder >> 63;
    result.remainder = (result.remainder << 1) | ((dividend >> i) & 1);
    result.quotient <<= 1;
    if (carry || result.remainder >= divisor) {
      result.remainder -= divisor;
      result.quotient |= 1;
    }
  }
  return result;
}

template <class T> uint64_t magnitude(T a) {
  return static_cast<uint64_t>(a < 0 ? -Big{a} : Big{a});
}

TEST_CASE_TEMPLATE("add, sub, neg, abs, min, max, sad wrap", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t,
                   int64_t) {
  for (T a : edge_operands<T>()) {
    CHECK(neg(a) == wrapped<T>(-Big{a}));
    CHECK(abs(a) == wrapped<T>(Big{a} < 0 ? -Big{a} : Big{a}));
    CHECK(relu(a) == wrapped<T>(Big{a} < 0 ? Big{0} : Big{a}));
    for (T b : edge_operands<T>()) {
      CHECK(add(a, b) == wrapped<T>(Big{a} + b));
      CHECK(sub(a, b) == wrapped<T>(Big{a} - b));
      CHECK(min(a, b) == (Big{a} - b < 0 ? a : b));
      CHECK(max(a, b) == (Big{a} - b < 0 ? b : a));
      const Big distance = Big{a} > Big{b} ? Big{a} - b : Big{b} - a;
      for (T c : {T{0}, T{5}, static_cast<T>(-1)})
        CHECK(sad(a, b, c) == wrapped<T>(distance + c));
    }
  }
}

TEST_CASE_TEMPLATE("products", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  for (T a : edge_operands<T>())
    for (T b : edge_operands<T>()) {
      const T high = long_multiplication_high(a, b);
      CHECK(mul_hi(a, b) == high);
      CHECK(mul_lo(a, b) == static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)));
      for (T c : {T{0}, static_cast<T>(-1), static_cast<T>(T{1} << (8 * sizeof(T) - 2))}) {
        CHECK(mad_lo(a, b, c) == wrapped<T>(Big{mul_lo(a, b)} + c));
        CHECK(mad_hi(a, b, c) == wrapped<T>(Big{high} + c));
      }
    }
}

TEST_CASE_TEMPLATE("wide products", T, uint16_t, int16_t, uint32_t, int32_t) {
  for (T a : edge_operands<T>())
    for (T b : edge_operands<T>()) {
      CHECK(Big{mul_wide(a, b)} == Big{a} * b);
      const auto c = static_cast<Wider<T>>(0x7fffffff7fff1234);
      CHECK(mad_wide(a, b, c) == wrapped<Wider<T>>(Big{a} * b + c));
    }
}

TEST_CASE("saturating forms clamp to 32 bits") {
  for (int32_t a : edge_operands<int32_t>())
    for (int32_t b : edge_operands<int32_t>()) {
      CHECK(add_sat(a, b) == clamped<int32_t>(Big{a} + b));
      CHECK(sub_sat(a, b) == clamped<int32_t>(Big{a} - b));
      for (int32_t c : {0, INT32_MAX, INT32_MIN, -1}) {
        const Big product = Big{a} * b;
        CHECK(mad_hi_sat(a, b, c) == clamped<int32_t>((product >> 32) + c));
        CHECK(mad24_hi_sat(a, b, c) == clamped<int32_t>(Big{mul24_hi(a, b)} + c));
      }
    }
}

// The low 24 bits as a number, digit by digit.
template <class T> Big low_24_bits(T a) {
  Big value = 0;
  for (unsigned i = 0; i < 24; ++i)
    if (test::bit(a, i)) value += i == 23 && std::is_signed_v<T> ? -(Big{1} << 23) : Big{1} << i;
  return value;
}

TEST_CASE_TEMPLATE("24-bit products", T, uint32_t, int32_t) {
  for (T a : edge_operands<T>())
    for (T b : edge_operands<T>()) {
      const Big product = low_24_bits(a) * low_24_bits(b);
      CHECK(mul24_lo(a, b) == wrapped<T>(product));
      CHECK(mul24_hi(a, b) == wrapped<T>(product >> 16));
      const T c = static_cast<T>(0x80000007u);
      CHECK(mad24_lo(a, b, c) == wrapped<T>(product + c));
      CHECK(mad24_hi(a, b, c) == wrapped<T>((product >> 16) + c));
    }
}

TEST_CASE_TEMPLATE("div and rem", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  for (T a : edge_operands<T>())
    for (T b : edge_operands<T>()) {
      if (b == 0) {
        CHECK(div(a, b) == static_cast<T>(-1));
        CHECK(rem(a, b) == static_cast<T>(-1));
        continue;
      }
      const Quotient expected = long_division(magnitude(a), magnitude(b));
      CHECK(div(a, b) == wrapped<T>((a < 0) != (b < 0) ? -Big{expected.quotient} : Big{expected.quotient}));
      CHECK(rem(a, b) == wrapped<T>(a < 0 ? -Big{expected.remainder} : Big{expected.remainder}));
    }
}

// Dividends next to multiples of the divisor are critical for a rounded quotient.
TEST_CASE_TEMPLATE("div and rem next to multiples", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  std::mt19937_64 random(5);
  unsigned wrong = 0;
  for (unsigned i = 0; i < 200000; ++i) {
    const T b = static_cast<T>(random() >> (random() % 64));
    const T factor = static_cast<T>(random() >> (random() % 64));
    const T a = static_cast<T>(static_cast<uint64_t>(factor) * static_cast<uint64_t>(b) + random() % 3 - 1);
    if (b == 0) continue;
    const Big quotient = Big{a} / Big{b};
    wrong += div(a, b) != wrapped<T>(quotient) || rem(a, b) != wrapped<T>(Big{a} - quotient * Big{b});
  }
  CHECK(wrong == 0);
}

// The i-th byte or half of a register as a number.
Big part(uint32_t value, unsigned width, unsigned index, bool is_signed) {
  Big result = (value >> (width * index)) % (1u << width);
  if (is_signed && result >= Big{1} << (width - 1)) result -= Big{1} << width;
  return result;
}

template <class A, class B> void check_dot_products() {
  for (uint32_t a : edge_operands<uint32_t>())
    for (uint32_t b : edge_operands<uint32_t>())
      for (uint32_t c : {0u, 0x7fffffffu, 0xffffffffu}) {
        constexpr bool a_signed = std::is_signed_v<A>;
        constexpr bool b_signed = std::is_signed_v<B>;
        Big of_four = c;
        for (unsigned i = 0; i < 4; ++i)
          of_four += part(a, 8, i, a_signed) * part(b, 8, i, b_signed);
        CHECK(dp4a<A, B>(a, b, c) == wrapped<uint32_t>(of_four));
        const Big a_0 = part(a, 16, 0, a_signed);
        const Big a_1 = part(a, 16, 1, a_signed);
        const Big low = a_0 * part(b, 8, 0, b_signed) + a_1 * part(b, 8, 1, b_signed);
        const Big high = a_0 * part(b, 8, 2, b_signed) + a_1 * part(b, 8, 3, b_signed);
        CHECK(dp2a<A, B, false>(a, b, c) == wrapped<uint32_t>(low + c));
        CHECK(dp2a<A, B, true>(a, b, c) == wrapped<uint32_t>(high + c));
      }
}

TEST_CASE("dot products extend each operand by its own type") {
  check_dot_products<uint32_t, uint32_t>();
  check_dot_products<uint32_t, int32_t>();
  check_dot_products<int32_t, uint32_t>();
  check_dot_products<int32_t, int32_t>();
}

} // namespace
} // namespace ptxrewrite::emulator::semantics::integer_semantics_test
