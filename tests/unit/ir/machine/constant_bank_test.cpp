// Loads of .const variables at known addresses. ptxas folds them into constant operands before sm_90 (c[0x3][offset] in
// nvdisasm's listings) and merges neighbours into one load from there on: a kernel with eight taps has one more
// instruction per product and per load than a kernel without taps. The figures are those of ptxas 13.0; if it is
// installed, they are measured again.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cstdio>

namespace ptxrewrite::tests::constant_bank_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

constexpr int taps = 8;

// out = the sum of taps[i] * in[i]; `address`: of the i-th tap, where %i is its offset.
std::string convolution(int count, const std::string& load) {
  std::string body;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i), offset = std::to_string(4 * i);
    std::string one = load;
    one.replace(one.find("OFFSET"), 6, offset);
    one.replace(one.find("VALUE"), 5, "%c" + number);
    body += one + "\nld.global.f32 %x" + number + ", [%in+" + offset + "];\nfma.rn.f32 %sum, %c" + number + ", %x" +
            number + ", %sum;\n";
  }
  return ".version 8.0\n.target sm_75\n.address_size 64\n.const .align 16 .f32 taps[64];\n"
         ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 place)\n{\n"
         ".reg .b64 %in, %out, %place; .reg .f32 %c<8>, %x<8>, %sum; .reg .b32 %r<9>;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %place, [place]; mov.f32 %sum, 0f00000000;\n" +
         body + "st.global.f32 [%out], %sum;\nret;\n}\n";
}

uint32_t lowered(const std::string& ptx, uint32_t capability) {
  ReadText text(ptx);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  REQUIRE(construct_ssa(text.function()).ok());
  return lower(text.function(), capability).static_instructions();
}

constexpr const char* by_name = "ld.const.f32 VALUE, [taps+OFFSET];";
constexpr const char* by_register = "ld.const.f32 VALUE, [%place+OFFSET];";

} // namespace

TEST_CASE("a constant variable at a known place is an operand, and before that its neighbours come together") {
  struct Expected {
    uint32_t capability, loads; // of eight taps
  };
  for (const Expected& expected : {Expected{35, 0}, {50, 0}, {70, 0}, {75, 0}, {80, 0}, {90, 4}, {100, 2}, {120, 2}}) {
    const uint32_t with = lowered(convolution(taps, by_name), expected.capability);
    const uint32_t without = lowered(convolution(0, by_name), expected.capability);
    // A load and a product for each tap; the base of `in`, two words, and the initial sum are only read if there are
    // taps.
    const uint32_t both = 2 * taps + expected.loads;
    CHECK_MESSAGE(with - without >= both, "sm_" << expected.capability);
    CHECK_MESSAGE(with - without <= both + 3, "sm_" << expected.capability);
  }
}

TEST_CASE("a constant variable at a place in a register is loaded") {
  const uint32_t known = lowered(convolution(taps, by_name), 80), unknown = lowered(convolution(taps, by_register), 80);
  CHECK(unknown >= known + taps);
}

TEST_CASE("ptxas makes as many instructions of constant operands") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75U, 80U, 90U, 100U, 120U})
    for (const char* load : {by_name, by_register}) {
      const std::string text = convolution(taps, load);
      const Result<FiguresByFunction> figures = machine_figures(text, "sm_" + std::to_string(capability));
      if (!figures) {
        MESSAGE("skipped: sm_" << capability << ": " << figures.error().message);
        continue;
      }
      const auto real = static_cast<int>(figures->at("k").instructions);
      const auto found = static_cast<int>(lowered(text, capability));
      std::printf("sm_%u: %d, by the model %d\n", capability, real, found);
      if (load == by_name) CHECK(std::abs(real - found) <= 2);
    }
}

} // namespace ptxrewrite::tests::constant_bank_test
