// Integers of PTX 9.2 to 9.4 on the emulator, each against one line of plain arithmetic: all pairs of bytes, and random
// words.
#include "tests/unit/emulator/run_ptx.h"

#include <algorithm>
#include <functional>
#include <random>

namespace ptxrewrite::emulator::packed_integers_test {
namespace {

constexpr unsigned count = 65536;

// `instruction` with %r0 = f(%r1, %r2), on all pairs.
std::vector<uint32_t> computed(const std::string& instruction, const std::vector<uint32_t>& a,
                               const std::vector<uint32_t>& b) {
  const std::string text = ".version 9.4\n.target sm_107a\n.address_size 64\n"
                           ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out) {\n"
                           ".reg .b64 %d<4>; .reg .b32 %r<3>; .reg .b32 %i<4>;\n"
                           "ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [out];\n"
                           "mov.u32 %i0, %tid.x; mov.u32 %i1, %ctaid.x; mad.lo.u32 %i0, %i1, 1024, %i0;\n"
                           "mul.wide.u32 %d3, %i0, 4; add.u64 %d0, %d0, %d3; add.u64 %d1, %d1, %d3;\n"
                           "add.u64 %d2, %d2, %d3; ld.global.b32 %r1, [%d0]; ld.global.b32 %r2, [%d1];\n" +
                           instruction + "\nst.global.b32 [%d2], %r0; ret; }\n";
  const PtxRun run = run_ptx(text, {.kernel = "k", .grid = {count / 1024}, .block = {1024}},
                             {buffer_of(a), buffer_of(b), zeros<uint32_t>(count)});
  REQUIRE(run.error == "");
  REQUIRE(run.ok());
  return run.buffer<uint32_t>(2);
}

// Every byte pair occurs once in each of the four places, beside others.
void bytes_of_pairs(std::vector<uint32_t>& a, std::vector<uint32_t>& b) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t x = i & 0xff, y = i >> 8;
    a.push_back(x | (x ^ 0x5a) << 8 | ((x + 77) & 0xff) << 16 | (255 - x) << 24);
    b.push_back(y | (y ^ 0xa5) << 8 | ((y + 13) & 0xff) << 16 | (255 - y) << 24);
  }
}
void random_words(std::vector<uint32_t>& a, std::vector<uint32_t>& b) {
  std::mt19937 random(9);
  const uint32_t edges[] = {0, 1, 0x7fff, 0x8000, 0xffff, 0x80007fff, 0x7fff8000, 0xffffffff, 0x80000000, 0x00010001};
  for (uint32_t i = 0; i < count; ++i) {
    a.push_back(i < 100 ? edges[i % 10] : random());
    b.push_back(i < 100 ? edges[i / 10] : random());
  }
}

// Applies `element` to each field of `bits` bits, signed or not.
template <class Element>
uint32_t by_field(uint32_t a, uint32_t b, unsigned bits, bool is_signed, const Element& element) {
  const auto field = [&](uint32_t word, unsigned shift) {
    const int64_t value = (word >> shift) & ((1u << bits) - 1);
    return is_signed && (value >> (bits - 1)) != 0 ? value - (int64_t{1} << bits) : value;
  };
  uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += bits)
    result |= (static_cast<uint32_t>(element(field(a, shift), field(b, shift))) & ((1u << bits) - 1)) << shift;
  return result;
}

struct Row {
  std::string instruction; // %r0, %r1, %r2
  unsigned bits;
  bool is_signed;
  std::function<int64_t(int64_t, int64_t)> element;
};

} // namespace

TEST_CASE("packed integers of 9.2 to 9.4 are the integers that they hold, one by one") {
  const auto clamp = [](int64_t least, int64_t most) {
    return [=](int64_t value) { return std::clamp(value, least, most); };
  };
  const auto sum = [](int64_t a, int64_t b) { return a + b; };
  const auto s8 = clamp(-128, 127), u8 = clamp(0, 255), s16 = clamp(-32768, 32767), u16 = clamp(0, 65535);
  std::vector<Row> rows = {
      {"add.u8x4 %r0, %r1, %r2;", 8, false, sum},
      {"add.s8x4 %r0, %r1, %r2;", 8, true, sum},
      {"add.sat.u8x4 %r0, %r1, %r2;", 8, false, [&](int64_t a, int64_t b) { return u8(a + b); }},
      {"add.sat.s8x4 %r0, %r1, %r2;", 8, true, [&](int64_t a, int64_t b) { return s8(a + b); }},
      {"sub.u8x4 %r0, %r1, %r2;", 8, false, [](int64_t a, int64_t b) { return a - b; }},
      {"sub.s8x4 %r0, %r1, %r2;", 8, true, [](int64_t a, int64_t b) { return a - b; }},
      {"sub.sat.u8x4 %r0, %r1, %r2;", 8, false, [&](int64_t a, int64_t b) { return u8(a - b); }},
      {"sub.sat.s8x4 %r0, %r1, %r2;", 8, true, [&](int64_t a, int64_t b) { return s8(a - b); }},
      {"min.u8x4 %r0, %r1, %r2;", 8, false, [](int64_t a, int64_t b) { return std::min(a, b); }},
      {"min.s8x4 %r0, %r1, %r2;", 8, true, [](int64_t a, int64_t b) { return std::min(a, b); }},
      {"max.u8x4 %r0, %r1, %r2;", 8, false, [](int64_t a, int64_t b) { return std::max(a, b); }},
      {"max.s8x4 %r0, %r1, %r2;", 8, true, [](int64_t a, int64_t b) { return std::max(a, b); }},
      {"min.relu.s8x4 %r0, %r1, %r2;", 8, true,
       [](int64_t a, int64_t b) { return std::max<int64_t>(std::min(a, b), 0); }},
      {"max.relu.s8x4 %r0, %r1, %r2;", 8, true,
       [](int64_t a, int64_t b) {
         return std::max({a, b, int64_t{0}});
       }},
      {"neg.s8x4 %r0, %r1;", 8, true, [](int64_t a, int64_t) { return -a; }},
      {"add.sat.u16x2 %r0, %r1, %r2;", 16, false, [&](int64_t a, int64_t b) { return u16(a + b); }},
      {"add.sat.s16x2 %r0, %r1, %r2;", 16, true, [&](int64_t a, int64_t b) { return s16(a + b); }},
  };
  const std::pair<const char*, std::function<bool(int64_t, int64_t)>> comparisons[] = {
      {"eq", std::equal_to<>()},   {"ne", std::not_equal_to<>()},  {"lt", std::less<>()}, {"gt", std::greater<>()},
      {"le", std::less_equal<>()}, {"ge", std::greater_equal<>()}, {"lo", std::less<>()}, {"hi", std::greater<>()},
      {"ls", std::less_equal<>()}, {"hs", std::greater_equal<>()}};
  for (const auto& [word, compare] : comparisons)
    for (const char* type : {"u8x4", "s8x4", "u16x2", "s16x2"}) {
      const bool is_signed = type[0] == 's';
      if (is_signed && (word[0] == 'h' || (word[0] == 'l' && word[1] != 't' && word[1] != 'e'))) continue;
      rows.push_back({std::string("set.") + word + "." + type + " %r0, %r1, %r2;", type[1] == '8' ? 8u : 16u, is_signed,
                      [compare = compare](int64_t a, int64_t b) { return compare(a, b) ? -1 : 0; }});
    }
  std::vector<uint32_t> bytes_a, bytes_b, words_a, words_b;
  bytes_of_pairs(bytes_a, bytes_b);
  random_words(words_a, words_b);
  for (const Row& row : rows) {
    CAPTURE(row.instruction);
    const auto& a = row.bits == 8 ? bytes_a : words_a;
    const auto& b = row.bits == 8 ? bytes_b : words_b;
    const std::vector<uint32_t> got = computed(row.instruction, a, b);
    size_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i)
      wrong += got[i] != by_field(a[i], b[i], row.bits, row.is_signed, row.element);
    CHECK(wrong == 0);
  }
}

TEST_CASE("add.sat.u32 stops at the largest number") {
  std::vector<uint32_t> a, b;
  random_words(a, b);
  const std::vector<uint32_t> got = computed("add.sat.u32 %r0, %r1, %r2;", a, b);
  size_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i)
    wrong += got[i] != std::min<uint64_t>(uint64_t{a[i]} + b[i], UINT32_MAX);
  CHECK(wrong == 0);
}

TEST_CASE("clmad is a product of polynomials over GF(2)") {
  std::vector<uint32_t> a, b;
  random_words(a, b);
  // 64-bit operands are made of both words; the halves of the product are stored one after the other.
  const std::string wide = "{ .reg .b64 %x, %y, %z; mov.b64 %x, {%r1, %r2}; mov.b64 %y, {%r2, %r1};\n"
                           "xor.b64 %y, %y, 0x123456789abcdef0; ";
  const std::string ends[] = {
      "clmad.lo.u64 %z, %x, %y, %x; mov.b64 {%r0, _}, %z; }", "clmad.lo.u64 %z, %x, %y, %x; mov.b64 {_, %r0}, %z; }",
      "clmad.hi.u64 %z, %x, %y, 5; mov.b64 {%r0, _}, %z; }", "clmad.hi.s64 %z, %x, %y, 5; mov.b64 {_, %r0}, %z; }"};
  for (unsigned part = 0; part < 4; ++part) {
    const std::vector<uint32_t> got = computed(wide + ends[part], a, b);
    size_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t x = uint64_t{b[i]} << 32 | a[i];
      const uint64_t y = (uint64_t{a[i]} << 32 | b[i]) ^ 0x123456789abcdef0;
      unsigned __int128 product = 0;
      for (unsigned bit = 0; bit < 64; ++bit)
        if ((x >> bit & 1) != 0) product ^= static_cast<unsigned __int128>(y) << bit;
      const uint64_t result = part < 2 ? static_cast<uint64_t>(product) ^ x : static_cast<uint64_t>(product >> 64) ^ 5;
      wrong += got[i] != static_cast<uint32_t>(result >> (part % 2 * 32));
    }
    CHECK(wrong == 0);
  }
}

} // namespace ptxrewrite::emulator::packed_integers_test
