// Comparison, selection, packed 16-bit integers and integer conversions.
#include "emulator/semantics/compare.h"
#include "emulator/semantics/convert_integer.h"
#include "emulator/semantics/packed.h"
#include "tests/unit/emulator/semantics/edge_operands.h"

#include <doctest/doctest.h>

#include <bit>

namespace ptxrewrite::emulator::semantics::select_semantics_test {
namespace {

using test::Big;
using test::clamped;
using test::edge_operands;
using test::wrapped;

TEST_CASE_TEMPLATE("comparisons follow the difference", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  for (T a : edge_operands<T>())
    for (T b : edge_operands<T>()) {
      const Big difference = Big{a} - Big{b};
      CHECK(compare<IntegerComparison::eq>(a, b) == (difference == 0));
      CHECK(compare<IntegerComparison::ne>(a, b) == (difference != 0));
      CHECK(compare<IntegerComparison::lt>(a, b) == (difference < 0));
      CHECK(compare<IntegerComparison::le>(a, b) == (difference <= 0));
      CHECK(compare<IntegerComparison::gt>(a, b) == (difference > 0));
      CHECK(compare<IntegerComparison::ge>(a, b) == (difference >= 0));
    }
}

TEST_CASE("setp's second predicate is made of the complement of the comparison") {
  using enum BooleanOperation;
  for (bool t : {false, true})
    for (bool c : {false, true}) {
      CHECK(setp(none, t, c).p == t);
      CHECK(setp(none, t, c).q == !t);
      CHECK(setp(and_, t, c).p == (t && c));
      CHECK(setp(and_, t, c).q == (!t && c));
      CHECK(setp(or_, t, c).p == (t || c));
      CHECK(setp(or_, t, c).q == (!t || c));
      CHECK(setp(xor_, t, c).p == (t != c));
      CHECK(setp(xor_, t, c).q == (t == c));
      for (BooleanOperation operation : {none, and_, or_, xor_}) // 32 lanes at once
        for (unsigned lane : {0u, 31u}) {
          const auto pair = setp(operation, uint32_t{t} << lane, uint32_t{c} << lane);
          CHECK(test::bit(pair.p, lane) == setp(operation, t, c).p);
          CHECK(test::bit(pair.q, lane) == setp(operation, t, c).q);
        }
    }
}

TEST_CASE("set, selp, slct") {
  CHECK(set_integer<uint32_t>(true) == 0xffffffff);
  CHECK(set_integer<uint16_t>(true) == 0xffff);
  CHECK(set_integer<uint32_t>(false) == 0);
  CHECK(std::bit_cast<float>(set_f32(true)) == 1.0f);
  CHECK(set_f32(false) == 0);
  CHECK(selp(1, 2, true) == 1);
  CHECK(selp(1, 2, false) == 2);
  CHECK(slct(1, 2, 0) == 1);
  CHECK(slct(1, 2, INT32_MAX) == 1);
  CHECK(slct(1, 2, -1) == 2);
  CHECK(slct(1, 2, INT32_MIN) == 2);
}

TEST_CASE("slct on floats") {
  struct Row {
    uint32_t selector;
    bool plain; // a is selected
    bool flushed;
  };
  const Row rows[] = {{0x00000000, true, true},   {0x80000000, true, true},   {0x3f800000, true, true},
                      {0xbf800000, false, false}, {0x00000001, true, true},   {0x80000001, false, true},
                      {0x807fffff, false, true},  {0x80800000, false, false}, {0x7f800000, true, true},
                      {0xff800000, false, false}, {0x7fc00000, false, false}, {0xffc00000, false, false}};
  for (const Row& row : rows) {
    CHECK((slct_f32(1, 2, std::bit_cast<float>(row.selector), false) == 1) == row.plain);
    CHECK((slct_f32(1, 2, std::bit_cast<float>(row.selector), true) == 1) == row.flushed);
  }
}

// Half of a register as a number.
Big half(uint32_t value, unsigned index, bool is_signed) {
  Big result = index == 0 ? value % 65536 : value / 65536;
  return is_signed && result > 32767 ? result - 65536 : result;
}

TEST_CASE("packed 16-bit integers") {
  for (uint32_t a : edge_operands<uint32_t>())
    for (uint32_t b : edge_operands<uint32_t>())
      for (unsigned i : {0u, 1u}) {
        auto result = [i](uint32_t value) { return static_cast<uint16_t>(half(value, i, false)); };
        const Big a_u = half(a, i, false);
        const Big b_u = half(b, i, false);
        const Big a_s = half(a, i, true);
        const Big b_s = half(b, i, true);
        const Big smaller = a_s < b_s ? a_s : b_s;
        const Big greater = a_s < b_s ? b_s : a_s;
        CHECK(result(add_x2<uint16_t>(a, b)) == wrapped<uint16_t>(a_u + b_u));
        CHECK(result(add_x2<int16_t>(a, b)) == wrapped<uint16_t>(a_s + b_s));
        CHECK(result(min_x2<uint16_t>(a, b)) == wrapped<uint16_t>(a_u < b_u ? a_u : b_u));
        CHECK(result(max_x2<uint16_t>(a, b)) == wrapped<uint16_t>(a_u < b_u ? b_u : a_u));
        CHECK(result(min_x2<int16_t>(a, b)) == wrapped<uint16_t>(smaller));
        CHECK(result(max_x2<int16_t>(a, b)) == wrapped<uint16_t>(greater));
        CHECK(result(min_relu_s16x2(a, b)) == wrapped<uint16_t>(smaller < 0 ? Big{0} : smaller));
        CHECK(result(max_relu_s16x2(a, b)) == wrapped<uint16_t>(greater < 0 ? Big{0} : greater));
      }
}

template <class From, class To> void check_conversion() {
  for (From a : edge_operands<From>()) {
    CHECK(cvt<To>(a) == wrapped<To>(Big{a}));
    CHECK(Big{cvt_sat<To>(a)} == clamped<To>(Big{a}));
  }
}

TEST_CASE_TEMPLATE("conversions cut off, extend or clamp", From, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t,
                   uint64_t, int64_t) {
  check_conversion<From, uint8_t>();
  check_conversion<From, int8_t>();
  check_conversion<From, uint16_t>();
  check_conversion<From, int16_t>();
  check_conversion<From, uint32_t>();
  check_conversion<From, int32_t>();
  check_conversion<From, uint64_t>();
  check_conversion<From, int64_t>();
}

TEST_CASE("a wider register holds the converted value extended by its own type") {
  CHECK(widen<uint32_t>(cvt<int8_t>(int32_t{0x80})) == 0xffffff80);
  CHECK(widen<uint32_t>(cvt<uint8_t>(int32_t{0x1ff})) == 0xff);
  CHECK(widen<uint64_t>(int16_t{-2}) == 0xfffffffffffffffe);
  CHECK(widen<uint16_t>(uint8_t{0xfe}) == 0xfe);
}

// Field by field, least significant first: b, a, then c's low bits.
template <unsigned Bits, bool Signed> void check_pack() {
  const Big low = Signed ? -(Big{1} << (Bits - 1)) : Big{0};
  const Big high = low + (Big{1} << Bits) - 1;
  for (int32_t a : edge_operands<int32_t>())
    for (int32_t b : edge_operands<int32_t>()) {
      const uint32_t c = 0x9abcdef1;
      Big expected = Bits == 16 ? Big{0} : Big{c};
      for (int32_t value : {a, b}) {
        Big field = value < low ? low : value > high ? high : Big{value};
        if (field < 0) field += Big{1} << Bits;
        expected = expected * (Big{1} << Bits) + field;
      }
      CHECK(cvt_pack<Bits, Signed>(a, b, c) == wrapped<uint32_t>(expected));
    }
}

TEST_CASE("cvt.pack") {
  check_pack<16, false>();
  check_pack<16, true>();
  check_pack<8, false>();
  check_pack<8, true>();
  check_pack<4, false>();
  check_pack<4, true>();
  check_pack<2, false>();
  check_pack<2, true>();
}

} // namespace
} // namespace ptxrewrite::emulator::semantics::select_semantics_test
