// Carry chains against unbounded numbers, single steps and long additions, subtractions and multiplications.
#include "emulator/semantics/carry.h"
#include "tests/unit/emulator/semantics/edge_operands.h"

#include <doctest/doctest.h>

namespace ptxrewrite::emulator::semantics::carry_semantics_test {
namespace {

using test::Big;
using test::clamped;
using test::edge_operands;
using test::wrapped;

// The register's bits as an unsigned number.
template <class T> Big plain(T a) {
  return static_cast<std::make_unsigned_t<T>>(a);
}

TEST_CASE_TEMPLATE("sums and their carries", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  constexpr unsigned width = 8 * sizeof(T);
  for (T a : edge_operands<T>())
    for (T b : edge_operands<T>())
      for (bool carry : {false, true}) {
        const Big sum = plain(a) + plain(b) + carry;
        CHECK(addc_cc(a, b, carry).value == wrapped<T>(sum));
        CHECK(addc_cc(a, b, carry).carry == (sum >> width != 0));
        CHECK(addc(a, b, carry) == wrapped<T>(sum));
        const Big difference = plain(a) - plain(b) - !carry; // a clear flag is a borrow
        CHECK(subc_cc(a, b, carry).value == wrapped<T>(difference));
        CHECK(subc_cc(a, b, carry).carry == (difference >= 0));
        CHECK(subc(a, b, carry) == wrapped<T>(difference));
        if (!carry) CHECK(add_cc(a, b).carry == (sum >> width != 0));
        if (carry) CHECK(sub_cc(a, b).carry == (plain(a) >= plain(b)));
        for (T c : {T{0}, static_cast<T>(-1), static_cast<T>(0x1234)}) {
          const Big low = plain(mul_lo(a, b)) + plain(c) + carry;
          const Big high = plain(mul_hi(a, b)) + plain(c) + carry;
          CHECK(madc_lo_cc(a, b, c, carry).value == wrapped<T>(low));
          CHECK(madc_lo_cc(a, b, c, carry).carry == (low >> width != 0));
          CHECK(madc_hi_cc(a, b, c, carry).value == wrapped<T>(high));
          CHECK(madc_hi_cc(a, b, c, carry).carry == (high >> width != 0));
          CHECK(madc_lo(a, b, c, carry) == wrapped<T>(low));
          CHECK(madc_hi(a, b, c, carry) == wrapped<T>(high));
        }
      }
}

TEST_CASE("saturating ends of a chain") {
  for (int32_t a : edge_operands<int32_t>())
    for (int32_t b : edge_operands<int32_t>())
      for (bool carry : {false, true}) {
        CHECK(addc_sat(a, b, carry) == clamped<int32_t>(Big{a} + b + carry));
        CHECK(subc_sat(a, b, carry) == clamped<int32_t>(Big{a} - b - !carry));
        CHECK(madc_hi_sat(a, b, INT32_MAX, carry) == clamped<int32_t>(((Big{a} * b) >> 32) + INT32_MAX + carry));
      }
}

TEST_CASE("128-bit arithmetic from 32-bit steps") {
  const uint32_t x[4] = {0xffffffff, 0x00000001, 0xfffffffe, 0x1fffffff};
  const uint32_t y[4] = {0x00000001, 0xffffffff, 0x80000001, 0x00000003};
  Big a = 0;
  Big b = 0;
  for (int i = 3; i >= 0; --i) {
    a = (a << 32) | x[i];
    b = (b << 32) | y[i];
  }
  auto sum = add_cc(x[0], y[0]);
  auto difference = sub_cc(x[0], y[0]);
  for (unsigned i = 0; i < 4; ++i) {
    if (i > 0) sum = addc_cc(x[i], y[i], sum.carry);
    if (i > 0) difference = subc_cc(x[i], y[i], difference.carry);
    CHECK(sum.value == wrapped<uint32_t>((a + b) >> (32 * i)));
    CHECK(difference.value == wrapped<uint32_t>((a - b) >> (32 * i)));
  }
}

TEST_CASE("mixed chains: what ptxas folds") {
  CHECK(subc(5u, 2u, add_cc(0u, 1u).carry) == 2);
  CHECK(addc(5u, 2u, sub_cc(0u, 1u).carry) == 7);
  CHECK(subc(5u, 2u, sub_cc(0u, 1u).carry) == 2);
}

} // namespace
} // namespace ptxrewrite::emulator::semantics::carry_semantics_test
