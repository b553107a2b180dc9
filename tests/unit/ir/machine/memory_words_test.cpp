// Elements of 8 and 16 bits in vectors, and tables in constant memory: machine instructions besides the accesses
// themselves. Figures: half of the difference between four and two copies, by ptxas 11.8 for sm_35, sm_60 and sm_70 and
// 13.0 for sm_75, 80, 90 and 120, which agree unless a row says otherwise.
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <functional>

namespace ptxrewrite::tests::memory_words_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

constexpr uint32_t capabilities[] = {35, 60, 70, 75, 80, 90, 120};

// Machine instructions of one copy; `body` writes a copy.
double marginal(const std::function<std::string(int)>& body, uint32_t capability) {
  uint32_t counts[2];
  for (int copies : {2, 4}) {
    std::string code;
    for (int copy = 0; copy < copies; ++copy)
      code += body(copy);
    ReadText text(".version 8.0\n.target sm_75\n.address_size 64\n.const .align 16 .b8 table[2048];\n"
                  ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
                  ".reg .b64 %in, %out, %place, %sum, %wide; .reg .b16 %h<64>; .reg .b32 %r<64>; .reg .f32 %f<64>;\n"
                  "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u64 %place, table;\n" +
                  code + "ret;\n}\n");
    REQUIRE_MESSAGE(text.ok(), text.messages());
    REQUIRE(construct_ssa(text.function()).ok());
    counts[copies / 4] = lower(text.function(), capability).static_instructions();
  }
  return (static_cast<double>(counts[1]) - counts[0]) / 2;
}

std::string number(int value) {
  return std::to_string(value);
}

// {%h0, %h1 ...} of a copy.
std::string elements(int width, int copy) {
  std::string list;
  for (int i = 0; i < width; ++i)
    list += (i ? ", %h" : "{%h") + number(8 * copy + i);
  return list + "}";
}

std::string load(const std::string& type, int width, int copy) {
  return "ld.global.v" + number(width) + "." + type + " " + elements(width, copy) + ", [%in+" + number(16 * copy) +
         "];\n";
}

struct Vector {
  const char* type;
  int width;
  double taken_apart, put_together;
};
constexpr Vector vectors[] = {{"u16", 2, 1, 1}, {"u16", 4, 2, 2}, {"u8", 2, 2, 1}, {"u8", 4, 4, 3}};

} // namespace

TEST_CASE("elements of vectors are taken out of words and put into them") {
  for (const Vector& vector : vectors)
    for (uint32_t capability : capabilities) {
      INFO("sm_" << capability << " v" << vector.width << "." << vector.type);
      auto each = [&](int copy, const std::string& before, const std::string& after) {
        std::string code;
        for (int i = 0; i < vector.width; ++i) {
          const std::string element = "%h" + number(8 * copy + i), place = number(64 * copy + 8 * i) + "]";
          if (!before.empty()) code += before + " " + element + ", [%in+" + place + ";\n";
          code += "add.u16 " + element + ", " + element + ", 3;\n";
          if (!after.empty()) code += after + " [%out+" + place + ", " + element + ";\n";
        }
        return code;
      };
      const double apart =
          marginal([&](int copy) { return load(vector.type, vector.width, copy) + each(copy, "", "st.global.u16"); },
                   capability);
      CHECK(apart == 1 + 2 * vector.width + vector.taken_apart);
      const double together = marginal(
          [&](int copy) {
            return each(copy, "ld.global.u16", "") + "st.global.v" + number(vector.width) + "." + vector.type +
                   " [%out+" + number(16 * copy) + "], " + elements(vector.width, copy) + ";\n";
          },
          capability);
      CHECK(together == 1 + 2 * vector.width + vector.put_together);
    }
}

// I2F.U8 R, R.B1: before 9.0 for any byte, later for the lowest one; halves always.
TEST_CASE("conversions to floats take elements where they are") {
  for (uint32_t capability : capabilities)
    for (const Vector& vector : vectors) {
      INFO("sm_" << capability << " v" << vector.width << "." << vector.type);
      const double found = marginal(
          [&](int copy) {
            std::string code = load(vector.type, vector.width, copy);
            for (int i = 0; i < vector.width; ++i)
              code += "cvt.rn.f32.u16 %f" + number(8 * copy + i) + ", %h" + number(8 * copy + i) +
                      ";\nst.global.f32 [%out+" + number(64 * copy + 8 * i) + "], %f" + number(8 * copy + i) + ";\n";
            return code;
          },
          capability);
      const bool is_byte = vector.taken_apart == vector.width;
      CHECK(found == 1 + 2 * vector.width + (is_byte && capability >= 90 ? vector.width : 0));
    }
}

// LDC R, c[0x3][R + place]: the table's address and literals are in the access, the index has 32 bits.
TEST_CASE("tables in constant memory are read at an index of 32 bits") {
  for (uint32_t capability : capabilities) {
    INFO("sm_" << capability);
    auto lookup = [&](const std::string& code) {
      return marginal(
          [&](int copy) {
            return "ld.global.u32 %r1, [%in+" + number(4 * copy) + "]; and.b32 %r1, %r1, 255;\n" + code +
                   "st.global.u32 [%out+" + number(4 * copy) + "], %r2;\n";
          },
          capability);
    };
    CHECK(lookup("cvt.u64.u32 %wide, %r1; add.s64 %sum, %place, %wide; ld.const.u8 %r2, [%sum+16];\n") == 4);
    // Kepler to Pascal apply mask and scale together in one of the two.
    const double exact = capability < 70 ? 1 : 0;
    CHECK(std::abs(lookup("mul.wide.u32 %wide, %r1, 4; add.s64 %sum, %place, %wide; ld.const.u32 %r2, [%sum];\n") -
                   5) <= exact);
    CHECK(std::abs(lookup("mul.wide.u32 %wide, %r1, 4; add.s64 %sum, %place, %wide; add.s64 %sum, %sum, 256;\n"
                          "ld.const.u32 %r2, [%sum];\n") -
                   5) <= exact);
  }
}

} // namespace ptxrewrite::tests::memory_words_test
