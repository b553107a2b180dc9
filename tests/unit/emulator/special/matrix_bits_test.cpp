// mma bit for bit, over all codes of its operands: NaNs, infinities, subnormal numbers, every exponent. Elements lie as
// the manual says (PTX ISA 9.7.14.5); what it leaves open is as matrix.cpp says: sums along k from C on, exact
// products, each partial sum rounded once to f32; NaNs are canonical.
#include "tests/unit/emulator/float_codes.h"
#include "tests/unit/emulator/run_ptx.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <random>

namespace ptxrewrite::emulator::matrix_bits_test {
namespace {

using namespace emulator_test::float_codes;

struct Product {
  Format a, b;
  int m, k;
  bool half_sums; // C and D of f16
};

// Words of the lanes' registers.
using Registers = std::vector<std::array<uint32_t, 32>>;

struct Place {
  int lane, reg, element;
};
// Of a row of A, or a column of B (`blocks` 1): element k.
Place place_of(const Format& format, int blocks, int line, int k) {
  const int each = 32 / format.bits(), of_register = 4 * each;
  return {line % 8 * 4 + k % of_register / each, k / of_register * blocks + line / 8, k % each};
}
Place place_of_sum(bool half_sums, int row, int column) {
  const int lane = row % 8 * 4 + column / 2;
  return half_sums ? Place{lane, row / 8, column % 2} : Place{lane, row / 8 * 2 + column % 2, 0};
}

uint32_t element(const Registers& registers, const Place& place, int bits) {
  const uint32_t word = registers[static_cast<size_t>(place.reg)][static_cast<size_t>(place.lane)];
  return bits == 32 ? word : word >> (place.element * bits) & ((1u << bits) - 1);
}
void set_element(Registers& registers, const Place& place, int bits, uint32_t code) {
  registers[static_cast<size_t>(place.reg)][static_cast<size_t>(place.lane)] |= code << (place.element * bits);
}

std::string list(const char* name, size_t count, char prefix = '%') {
  std::string text = fmt::format("{{{}{}0", prefix, name);
  for (size_t i = 1; i < count; ++i)
    text += fmt::format(", {}{}{}", prefix, name, i);
  return text + "}";
}

// The instruction on the words of all registers; the results' words. `of_d`: the names of their registers.
Registers multiply(const std::string& instruction, const Registers& a, const Registers& b, const Registers& c,
                   char of_d = 'd') {
  const size_t count = a.size() + b.size() + c.size();
  std::vector<uint32_t> words;
  for (const Registers* part : {&a, &b, &c})
    for (const auto& lanes : *part)
      words.insert(words.end(), lanes.begin(), lanes.end());
  std::string text = "  .reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %lane;\n  .reg .b64 %rd<4>;\n  mov.u32 %lane, %tid.x;\n"
                     "  mul.wide.u32 %rd0, %lane, 4;\n  ld.param.u64 %rd1, [in];\n  add.u64 %rd1, %rd1, %rd0;\n"
                     "  ld.param.u64 %rd2, [out];\n  add.u64 %rd2, %rd2, %rd0;\n";
  size_t at = 0;
  const auto load = [&](char name, size_t registers) {
    for (size_t i = 0; i < registers; ++i, ++at)
      text += fmt::format("  ld.global.u32 %{}{}, [%rd1+{}];\n", name, i, at * 128);
  };
  load('a', a.size());
  load('b', b.size());
  load('c', c.size());
  text += fmt::format("  {} {}, {}, {}, {};\n", instruction, list(std::string(1, of_d).c_str(), c.size()),
                      list("a", a.size()), list("b", b.size()), list("c", c.size()));
  for (size_t i = 0; i < c.size(); ++i)
    text += fmt::format("  st.global.u32 [%rd2+{}], %{}{};\n", i * 128, of_d, i);
  REQUIRE(at == count);
  const PtxRun run = run_ptx(kernel("k", ".param .u64 in, .param .u64 out", text + "  ret;\n"),
                             {.kernel = "k", .block = {32}}, {buffer_of(words), zeros<uint32_t>(c.size() * 32)});
  REQUIRE(run.error == "");
  REQUIRE(run.failure() == "");
  Registers d(c.size());
  const auto results = run.buffer<uint32_t>(1);
  for (size_t i = 0; i < c.size(); ++i)
    std::copy_n(results.begin() + static_cast<ptrdiff_t>(i * 32), 32, d[i].begin());
  return d;
}

void check_floats(const Product& product, Codes codes, unsigned seed) {
  std::mt19937 random(seed);
  const char* sum_type = product.half_sums ? "f16" : "f32";
  const std::string instruction = fmt::format("mma.sync.aligned.m{}n8k{}.row.col.{}.{}.{}.{}", product.m, product.k,
                                              sum_type, product.a.name, product.b.name, sum_type);
  CAPTURE(instruction);
  CAPTURE(seed);
  const int blocks = product.m / 8;
  Registers a(static_cast<size_t>(product.m * product.k * product.a.bits() / 1024));
  Registers b(static_cast<size_t>(8 * product.k * product.b.bits() / 1024));
  Registers c(static_cast<size_t>(product.half_sums ? blocks : blocks * 2));
  const Format& sum_format = product.half_sums ? f16 : f32;
  for (int k = 0; k < product.k; ++k) {
    for (int row = 0; row < product.m; ++row)
      set_element(a, place_of(product.a, blocks, row, k), product.a.bits(), code_of(product.a, codes, random));
    for (int column = 0; column < 8; ++column)
      set_element(b, place_of(product.b, 1, column, k), product.b.bits(), code_of(product.b, codes, random));
  }
  for (int row = 0; row < product.m; ++row)
    for (int column = 0; column < 8; ++column)
      set_element(c, place_of_sum(product.half_sums, row, column), sum_format.bits(),
                  code_of(sum_format, codes, random));
  const Registers d = multiply(instruction, a, b, c);
  int wrong = 0;
  for (int row = 0; row < product.m; ++row)
    for (int column = 0; column < 8; ++column) {
      const Place place = place_of_sum(product.half_sums, row, column);
      auto sum = static_cast<float>(value_of(sum_format, element(c, place, sum_format.bits())));
      for (int k = 0; k < product.k; ++k)
        sum = std::fma(
            static_cast<float>(value_of(product.a, element(a, place_of(product.a, blocks, row, k), product.a.bits()))),
            static_cast<float>(value_of(product.b, element(b, place_of(product.b, 1, column, k), product.b.bits()))),
            sum);
      wrong += element(d, place, sum_format.bits()) != (product.half_sums ? f16_bits(sum) : f32_bits(sum));
    }
  CHECK(wrong == 0);
}

TEST_CASE("products of floats, all codes of all types") {
  const Product products[] = {
      {f16, f16, 16, 16, false},   {f16, f16, 16, 16, true},    {f16, f16, 16, 8, false},   {f16, f16, 16, 8, true},
      {bf16, bf16, 16, 16, false}, {bf16, bf16, 16, 8, false},  {tf32, tf32, 16, 8, false}, {tf32, tf32, 16, 4, false},
      {e4m3, e4m3, 16, 32, false}, {e5m2, e4m3, 16, 32, false}, {e4m3, e5m2, 16, 32, true}, {e5m2, e5m2, 16, 16, false},
  };
  for (const Product& product : products)
    for (Codes codes : {Codes::any, Codes::finite, Codes::small, Codes::few_specials})
      for (unsigned seed = 0; seed < 4; ++seed)
        check_floats(product, codes, seed);
}

TEST_CASE("D may be in the registers of A or C") {
  std::mt19937 random(5);
  const auto registers = [&](size_t count) {
    Registers made(count);
    for (auto& lanes : made)
      for (uint32_t& word : lanes)
        word = static_cast<uint32_t>(random());
    return made;
  };
  for (const char* types :
       {"m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f32.bf16.bf16.f32", "m16n8k16.row.col.f16.f16.f16.f16"}) {
    const std::string instruction = std::string("mma.sync.aligned.") + types;
    CAPTURE(instruction);
    const bool half_sums = instruction.ends_with("f16.f16.f16.f16");
    const Registers a = registers(4), b = registers(2), c = registers(half_sums ? 2 : 4);
    const Registers apart = multiply(instruction, a, b, c);
    CHECK(multiply(instruction, a, b, c, 'a') == apart);
    CHECK(multiply(instruction, a, b, c, 'c') == apart);
  }
}

struct Integers {
  const char* name;
  int bits;
  bool is_signed;
};

void check_integers(const Integers& a_type, const Integers& b_type, int m, int k, bool clamps, unsigned seed) {
  std::mt19937 random(seed);
  const std::string instruction = fmt::format("mma.sync.aligned.m{}n8k{}.row.col{}.s32.{}.{}.s32", m, k,
                                              clamps ? ".satfinite" : "", a_type.name, b_type.name);
  CAPTURE(instruction);
  CAPTURE(seed);
  const int blocks = m / 8;
  const Format a_place{"", a_type.bits - 1, 0, Specials::none, 0}, b_place{"", b_type.bits - 1, 0, Specials::none, 0};
  Registers a(static_cast<size_t>(m * k * a_type.bits / 1024)), b(static_cast<size_t>(k * b_type.bits / 128));
  Registers c(static_cast<size_t>(blocks * 2));
  // Extreme numbers as often as any.
  const bool extreme = seed % 2;
  for (Registers* part : {&a, &b, &c})
    for (auto& lanes : *part)
      for (uint32_t& word : lanes)
        word = extreme && part == &c ? (random() % 2 ? 0x7fffffff : 0x80000000)
               : extreme             ? (random() % 4 ? 0x80808080 : 0xffffffff)
                                     : static_cast<uint32_t>(random());
  const Registers d = multiply(instruction, a, b, c);
  const auto number = [](const Integers& type, uint32_t code) {
    const auto value = static_cast<int64_t>(code);
    return type.is_signed && code >> (type.bits - 1) ? value - (int64_t(1) << type.bits) : value;
  };
  int wrong = 0;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < 8; ++column) {
      const Place place = place_of_sum(false, row, column);
      int64_t sum = static_cast<int32_t>(element(c, place, 32));
      for (int i = 0; i < k; ++i)
        sum += number(a_type, element(a, place_of(a_place, blocks, row, i), a_type.bits)) *
               number(b_type, element(b, place_of(b_place, 1, column, i), b_type.bits));
      if (clamps) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      wrong += element(d, place, 32) != static_cast<uint32_t>(sum);
    }
  CHECK(wrong == 0);
}

TEST_CASE("products of integers, their largest ones and the largest sums among them") {
  const Integers s8{"s8", 8, true}, u8{"u8", 8, false}, s4{"s4", 4, true}, u4{"u4", 4, false};
  for (bool clamps : {false, true})
    for (unsigned seed = 0; seed < 6; ++seed) {
      for (const auto& [a, b] : {std::pair(s8, s8), std::pair(s8, u8), std::pair(u8, s8), std::pair(u8, u8)}) {
        check_integers(a, b, 8, 16, clamps, seed);
        check_integers(a, b, 16, 16, clamps, seed);
        check_integers(a, b, 16, 32, clamps, seed);
      }
      for (const auto& [a, b] : {std::pair(s4, s4), std::pair(s4, u4), std::pair(u4, s4), std::pair(u4, u4)}) {
        check_integers(a, b, 8, 32, clamps, seed);
        check_integers(a, b, 16, 32, clamps, seed);
        check_integers(a, b, 16, 64, clamps, seed);
      }
    }
}

} // namespace
} // namespace ptxrewrite::emulator::matrix_bits_test
