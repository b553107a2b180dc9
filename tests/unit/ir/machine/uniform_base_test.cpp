// Addresses of a parameter plus a 64-bit value of the lanes against ptxas for Turing, where accesses name both; uniform
// values of loops, which have no registers of the lanes.
#include "ir/machine/registers/registers.h"
#include "tests/unit/ir/machine/instruction_counts.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::uniform_base_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::string kernel(const std::string& body) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 "
         "c, "
         ".param .u64 d)\n{\n.reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd11, [a]; ld.param.u64 %rd12, [b]; ld.param.u64 %rd13, [c]; ld.param.u64 %rd14, [d];\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;\n" +
         body + "ret;\n}\n";
}

} // namespace

TEST_CASE("accesses of Turing add a parameter and a 64-bit value of the lanes") {
  if (skipped_without_ptxas()) return;
  const std::string extend = "cvt.s64.s32 %rd1, %r4; ", zero_extend = "cvt.u64.u32 %rd1, %r4; ",
                    sum = "add.s64 %rd2, %rd11, %rd1; ", second = "add.s64 %rd3, %rd12, %rd1; ",
                    load = "ld.global.u8 %r5, [%rd2]; ", copy = "st.global.u8 [%rd3], %r5; ";
  const std::string pointer = "mul.wide.s32 %rd1, %r4, 8; add.s64 %rd2, %rd11, %rd1; ld.global.u64 %rd3, [%rd2]; ";
  for (const auto& [what, body] : std::initializer_list<std::pair<const char*, std::string>>{
           {"an extended index for two parameters", extend + sum + load + second + copy},
           {"a zero-extended index", zero_extend + sum + load + second + copy},
           {"the terms in the other order", extend + "add.s64 %rd2, %rd1, %rd11; " + load + second + copy},
           {"one address for two accesses", extend + sum + load + "add.u32 %r5, %r5, 3; st.global.u8 [%rd2], %r5; "},
           {"constants", extend + sum + "ld.global.u8 %r5, [%rd2+8]; st.global.u8 [%rd2+16], %r5; "},
           {"a constant and a zero-extended index",
            "cvt.u64.u32 %rd1, %r1; " + sum + load + "st.global.u8 [%rd2+1024], %r5; "},
           {"read-only and generic", extend + sum + "ld.global.nc.u8 %r5, [%rd2]; " + second + "st.u8 [%rd3], %r5; "},
           {"an offset from memory", pointer + "add.s64 %rd4, %rd12, %rd3; ld.global.u32 %r5, [%rd4]; "
                                               "st.global.u32 [%rd2], %r5; "},
           {"a shift that two sums read", "cvt.s64.s32 %rd5, %r4; shl.b64 %rd1, %rd5, 2; " + sum +
                                              "ld.global.u32 %r5, [%rd2]; " + second + "st.global.u32 [%rd3], %r5; "},
           {"a shift that one sum reads: LEA", pointer + "shl.b64 %rd5, %rd3, 2; add.s64 %rd4, %rd12, %rd5; "
                                                         "ld.global.u32 %r5, [%rd4]; st.global.u32 [%rd2], %r5; "},
           {"logic", "mul.wide.s32 %rd5, %r4, 4; and.b64 %rd1, %rd5, -16; " + sum + "ld.global.u32 %r5, [%rd2]; " +
                         second + "st.global.u32 [%rd3], %r5; "},
           {"products: IMAD.WIDE", "mul.wide.s32 %rd1, %r4, 4; " + sum + "ld.global.u32 %r5, [%rd2]; " + second +
                                       "st.global.u32 [%rd3], %r5; "},
           {"an atomic operation does not", extend + sum + "atom.global.add.u32 %r5, [%rd2], 1; " + second + copy},
           {"a reduction does not", extend + sum + "red.global.add.u32 [%rd2], 1; "}})
    for (uint32_t capability : {75U, 80U}) {
      const auto [model, ptxas] = instruction_counts(kernel(body), capability);
      INFO("sm_" << capability << ", " << std::string(what));
      CHECK(model == ptxas);
    }
}

TEST_CASE("a parameter is loaded for each block whose accesses add it; predicated code belongs to the block before") {
  if (skipped_without_ptxas()) return;
  const std::string parameters[] = {"%rd12", "%rd13", "%rd14"};
  std::string skipped;
  for (int stores = 1; stores <= 3; ++stores) {
    const std::string sum = "%rd" + std::to_string(1 + stores);
    skipped += "add.s64 " + sum + ", " + parameters[stores - 1] + ", %rd1; st.global.u8 [" + sum + "], %r1; ";
    const auto [model, ptxas] =
        instruction_counts(kernel("cvt.s64.s32 %rd1, %r4; add.s64 %rd8, %rd11, %rd1; st.global.u8 [%rd8], %r1;\n"
                                  "setp.ge.s32 %p1, %r4, 77; @%p1 bra L; " +
                                  skipped + "\nL: st.global.u32 [%rd8+4], %r4; "),
                           75);
    INFO(stores << " skipped stores"); // ptxas branches around three
    CHECK(model == ptxas);
  }
}

TEST_CASE("the sum needs no registers") {
  if (skipped_without_ptxas()) return;
  const std::string text = kernel("cvt.s64.s32 %rd1, %r4; add.s64 %rd2, %rd11, %rd1; add.s64 %rd3, %rd12, %rd1; "
                                  "add.s64 %rd4, %rd13, %rd1; add.s64 %rd5, %rd14, %rd1; st.global.u8 [%rd2], %r1; "
                                  "st.global.u8 [%rd3], %r2; st.global.u8 [%rd4], %r1; st.global.u8 [%rd5], %r2; ");
  ReadText read(text);
  REQUIRE(read.ok());
  REQUIRE(construct_ssa(read.function()).ok());
  Result<FiguresByFunction> real = machine_figures(text, "sm_75");
  REQUIRE(real.ok());
  const int model = static_cast<int>(register_need(read.function(), 75).registers),
            ptxas = static_cast<int>(real->at("k").registers);
  INFO(model << " estimated, " << ptxas << " by ptxas");
  CHECK(std::abs(model - ptxas) <= 2); // four sums would have eight words
}

TEST_CASE("uniform values of two words that a loop passes on are not in registers of the lanes") {
  if (skipped_without_ptxas()) return;
  constexpr int values = 10; // of two words
  std::string before, loop, behind;
  for (int i = 0; i < values; ++i) {
    const std::string name = "%v" + std::to_string(i), next = "%v" + std::to_string((i + 1) % values);
    before += "mov.u64 " + name + ", " + std::to_string(7 * i + 3) + "; ";
    loop += "xor.b64 %t, " + name + ", " + next + "; add.s64 " + name + ", %t, " + std::to_string(i + 1) + ";\n";
    behind += "add.s64 %t, %t, " + name + "; ";
  }
  const std::string text =
      kernel(".reg .b64 %v<10>, %t, %i; ld.global.u64 %rd1, [%rd11]; mov.u64 %i, 0; " + before + "\nL:\n" + loop +
             "add.s64 %i, %i, 1; setp.lt.u64 %p1, %i, %rd12; @%p1 bra L;\n" + behind + "st.global.u64 [%rd13], %t; ");
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  REQUIRE(construct_ssa(read.function()).ok());
  for (uint32_t capability : {75U, 80U, 90U, 100U}) { // ptxas for sm_120 keeps these in the lanes
    Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
    REQUIRE(real.ok());
    const int model = static_cast<int>(register_need(read.function(), capability).registers),
              ptxas = static_cast<int>(real->at("k").registers);
    INFO("sm_" << capability << ": " << model << " estimated, " << ptxas << " by ptxas");
    CHECK(ptxas < 2 * values);
    CHECK(model < 2 * values);
  }
}

} // namespace ptxrewrite::tests::uniform_base_test
