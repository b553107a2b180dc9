// Bit counting, bit fields, logic, shifts and permutations, each stated bit by bit or byte by byte.
#include "emulator/semantics/bits.h"
#include "emulator/semantics/logic.h"
#include "tests/unit/emulator/semantics/edge_operands.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

namespace ptxrewrite::emulator::semantics::bit_semantics_test {
namespace {

using test::bit;
using test::edge_operands;

const uint32_t amounts[] = {0,   1,   2,   5,       7,          8,          15,         16,         17,
                            23,  24,  30,  31,      32,         33,         40,         47,         48,
                            62,  63,  64,  65,      100,        127,        128,        255,        256,
                            257, 288, 320, 0x10001, 0x80000000, 0x80000001, 0xffffff00, 0xffffffe0, 0xffffffff};

// The index of the topmost bit that equals `wanted`, or -1.
template <class T> int top_bit(T value, bool wanted) {
  for (int i = 8 * sizeof(T) - 1; i >= 0; --i)
    if (bit(value, static_cast<unsigned>(i)) == wanted) return i;
  return -1;
}

TEST_CASE_TEMPLATE("popc, clz, brev, cnot", U, uint32_t, uint64_t) {
  constexpr unsigned width = 8 * sizeof(U);
  for (U a : edge_operands<U>()) {
    unsigned ones = 0;
    for (unsigned i = 0; i < width; ++i)
      ones += bit(a, i);
    CHECK(popc(a) == ones);
    CHECK(clz(a) == width - 1 - static_cast<unsigned>(top_bit(a, true)));
    for (unsigned i = 0; i < width; ++i)
      CHECK(bit(brev(a), i) == bit(a, width - 1 - i));
    CHECK(cnot(a) == (ones == 0 ? 1 : 0));
  }
  CHECK(cnot(uint16_t{0}) == 1);
  CHECK(cnot(uint16_t{0x8000}) == 0);
}

TEST_CASE_TEMPLATE("bfind", T, uint32_t, int32_t, uint64_t, int64_t) {
  for (T a : edge_operands<T>()) {
    const int index = top_bit(a, !(a < 0)); // a negative number: the topmost zero
    CHECK(bfind(a) == static_cast<uint32_t>(index));
    CHECK(bfind_shiftamt(a) == (index < 0 ? 0xffffffff : static_cast<uint32_t>(8 * sizeof(T) - 1 - index)));
  }
}

TEST_CASE("fns walks over the set bits") {
  for (uint32_t mask : {0u, 1u, 0x80000000u, 0xf0u, 0xffffffffu, 0x80000001u, 0xa5a5a5a5u})
    for (uint32_t base : {0u, 1u, 4u, 7u, 30u, 31u, 32u, 0xffffffffu})
      for (int32_t offset : {0, 1, 2, 3, 5, 31, 32, 33, -1, -2, -3, -31, -32, INT32_MAX, INT32_MIN}) {
        std::vector<uint32_t> candidates; // in the order of the walk
        if (base < 32 && offset == 0 && bit(mask, base)) candidates.push_back(base);
        for (uint32_t i = base; i < 32 && offset != 0; i = offset > 0 ? i + 1 : i - 1)
          if (bit(mask, i)) candidates.push_back(i);
        const uint64_t index = offset == 0 ? 0 : static_cast<uint64_t>(std::abs(int64_t{offset})) - 1;
        CHECK(fns(mask, base, offset) == (index < candidates.size() ? candidates[index] : 0xffffffff));
      }
}

TEST_CASE_TEMPLATE("bfe fills with zeros or the sign", T, uint32_t, int32_t, uint64_t, int64_t) {
  constexpr uint64_t msb = 8 * sizeof(T) - 1;
  for (T a : edge_operands<T>())
    for (uint32_t position : amounts)
      for (uint32_t length : amounts) {
        // 64-bit fields use all bits of the numbers, as ptxas folds them.
        const uint64_t first = msb == 63 ? position : position % 256;
        const uint64_t count = msb == 63 ? length : length % 256;
        const bool fill = std::is_signed_v<T> && count != 0 && bit(a, std::min<uint64_t>(first + count - 1, msb));
        bool same = true;
        for (unsigned i = 0; i <= msb; ++i)
          same = same && bit(bfe(a, position, length), i) == (i < count && first + i <= msb ? bit(a, first + i) : fill);
        CHECK(same);
      }
}

TEST_CASE_TEMPLATE("bfi overwrites what fits", U, uint32_t, uint64_t) {
  constexpr unsigned width = 8 * sizeof(U);
  for (U a : edge_operands<U>())
    for (U b : {U{0}, static_cast<U>(-1), static_cast<U>(0x123456789abcdef0)})
      for (uint32_t position : amounts)
        for (uint32_t length : amounts) {
          const uint64_t first = width == 64 ? position : position % 256;
          const uint64_t count = width == 64 ? length : length % 256;
          bool same = true;
          for (unsigned i = 0; i < width; ++i)
            same = same && bit(bfi(a, b, position, length), i) ==
                               (i >= first && i < first + count ? bit(a, i - first) : bit(b, i));
          CHECK(same);
        }
}

template <class T, Overflow Mode> void check_szext() {
  for (T a : edge_operands<T>())
    for (uint32_t length : amounts) {
      const uint32_t count = Mode == Overflow::wrap ? length % 32 : std::min(length, 32u);
      const bool sign = std::is_signed_v<T> && count != 0 && bit(a, count - 1);
      bool same = true;
      for (unsigned i = 0; i < 32; ++i)
        same = same && bit(szext<T, Mode>(a, length), i) == (i < count ? bit(a, i) : sign);
      CHECK(same);
    }
}

TEST_CASE("szext") {
  check_szext<uint32_t, Overflow::clamp>();
  check_szext<int32_t, Overflow::clamp>();
  check_szext<uint32_t, Overflow::wrap>();
  check_szext<int32_t, Overflow::wrap>();
}

TEST_CASE("bmsk sets length bits from position on") {
  for (uint32_t position : amounts)
    for (uint32_t length : amounts) {
      bool same = true;
      for (uint64_t i = 0; i < 32; ++i) {
        const bool clamped = i >= position && i < uint64_t{position} + length;
        const bool in_wrapped = i >= position % 32 && i < position % 32 + length % 32;
        same = same && bit(bmsk<Overflow::clamp>(position, length), static_cast<unsigned>(i)) == clamped &&
               bit(bmsk<Overflow::wrap>(position, length), static_cast<unsigned>(i)) == in_wrapped;
      }
      CHECK(same);
    }
}

TEST_CASE("lop3 looks every bit up") {
  for (uint32_t table = 0; table < 256; ++table) {
    const uint32_t a = 0xf0f03c5a;
    const uint32_t b = 0xccccf0a5;
    const uint32_t c = 0xaaaa0ff1;
    bool same = true;
    for (unsigned i = 0; i < 32; ++i)
      same = same && bit(lop3(a, b, c, table), i) == bit(table, 4u * bit(a, i) + 2u * bit(b, i) + bit(c, i));
    CHECK(same);
  }
  // The manual's rule for a table: apply the function to these three numbers.
  CHECK(lop3(0xf0, 0xcc, 0xaa, 0xf0 & 0xcc & 0xaa) == (0xf0u & 0xccu & 0xaau));
  CHECK(lop3(0x12345678, 0x9abcdef0, 0x0f0f0f0f, (0xf0 & (~0xcc & 0xff)) ^ 0xaa) ==
        ((0x12345678u & ~0x9abcdef0u) ^ 0x0f0f0f0fu));
}

TEST_CASE("logic") {
  for (uint16_t a : {0x0000, 0xffff, 0x1234, 0x8001})
    for (uint16_t b : {0x0000, 0xffff, 0x4321, 0x8000})
      for (unsigned i = 0; i < 16; ++i) {
        CHECK(bit(bitwise_and(a, b), i) == (bit(a, i) && bit(b, i)));
        CHECK(bit(bitwise_or(a, b), i) == (bit(a, i) || bit(b, i)));
        CHECK(bit(bitwise_xor(a, b), i) == (bit(a, i) != bit(b, i)));
        CHECK(bit(bitwise_not(a), i) == !bit(a, i));
      }
}

TEST_CASE_TEMPLATE("shifts clamp the amount", T, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  constexpr unsigned width = 8 * sizeof(T);
  for (T a : edge_operands<T>())
    for (uint64_t amount : amounts) {
      bool same = true;
      for (uint64_t i = 0; i < width; ++i) {
        const bool left = i >= amount && bit(a, static_cast<unsigned>(i - amount));
        const bool right = i + amount < width ? bit(a, static_cast<unsigned>(i + amount)) : a < 0;
        same = same && bit(shl(a, static_cast<uint32_t>(amount)), static_cast<unsigned>(i)) == left &&
               bit(shr(a, static_cast<uint32_t>(amount)), static_cast<unsigned>(i)) == right;
      }
      CHECK(same);
    }
}

TEST_CASE("shf moves bits between two words") {
  const uint32_t a = 0x91223344;
  const uint32_t b = 0x55667789;
  const uint64_t both = (uint64_t{b} << 32) | a;
  for (uint32_t amount : amounts) {
    const uint32_t clamp = std::min(amount, 32u);
    const uint32_t wrap = amount % 32;
    bool same = true;
    for (unsigned i = 0; i < 32; ++i) {
      same = same && bit(shf_l<Overflow::clamp>(a, b, amount), i) == bit(both, 32 + i - clamp) &&
             bit(shf_l<Overflow::wrap>(a, b, amount), i) == bit(both, 32 + i - wrap) &&
             bit(shf_r<Overflow::clamp>(a, b, amount), i) == bit(both, i + clamp) &&
             bit(shf_r<Overflow::wrap>(a, b, amount), i) == bit(both, i + wrap);
    }
    CHECK(same);
  }
}

TEST_CASE("prmt picks bytes and signs") {
  const uint8_t bytes[8] = {0x80, 0x01, 0x7f, 0xff, 0x04, 0x85, 0x06, 0x97};
  for (uint32_t selector = 0; selector < 0x10000; selector += 7) {
    uint32_t expected = 0;
    for (int i = 3; i >= 0; --i) {
      const uint32_t nibble = (selector >> (4 * i)) % 16;
      uint32_t byte = bytes[nibble % 8];
      if (nibble >= 8) byte = byte >= 0x80 ? 0xff : 0x00;
      expected = expected * 256 + byte;
    }
    CHECK(prmt(0xff7f0180, 0x97068504, selector) == expected);
    CHECK(prmt(0xff7f0180, 0x97068504, selector | 0xabcd0000) == expected);
  }
}

// The manual's tables: for each of the four selectors the source bytes of d.b3, d.b2, d.b1, d.b0.
template <PermuteMode Mode> void check_mode(const char* const (&rows)[4]) {
  const uint32_t a = 0x93828170;
  const uint32_t b = 0x87068504;
  const uint64_t both = (uint64_t{b} << 32) | a;
  for (uint32_t selector = 0; selector < 8; ++selector) {
    uint32_t expected = 0;
    for (unsigned i = 0; i < 4; ++i)
      expected = expected << 8 | (both >> (8 * (rows[selector % 4][i] - '0')) & 0xff);
    CHECK(prmt_mode<Mode>(a, b, selector) == expected);
  }
}

TEST_CASE("prmt's modes") {
  check_mode<PermuteMode::f4e>({"3210", "4321", "5432", "6543"});
  check_mode<PermuteMode::b4e>({"5670", "6701", "7012", "0123"});
  check_mode<PermuteMode::rc8>({"0000", "1111", "2222", "3333"});
  check_mode<PermuteMode::ecl>({"3210", "3211", "3222", "3333"});
  check_mode<PermuteMode::ecr>({"0000", "1110", "2210", "3210"});
  check_mode<PermuteMode::rc16>({"1010", "3232", "1010", "3232"});
}

TEST_CASE("elements of a register: the first is the least significant") {
  CHECK(with_element<uint32_t, uint16_t>(with_element<uint32_t, uint16_t>(0, 0, 0x1234), 1, 0x5678) == 0x56781234);
  CHECK(element<uint64_t, uint16_t>(0x4444333322221111, 2) == 0x3333);
  CHECK(element<uint16_t, uint8_t>(0x2211, 1) == 0x22);
  CHECK(element<uint64_t, uint32_t>(with_element<uint64_t, uint32_t>(0x1, 1, 0x80000000), 1) == 0x80000000);
}

} // namespace
} // namespace ptxrewrite::emulator::semantics::bit_semantics_test
