// Moves in front of vector stores, as ptxas 13.0 makes them for sm_80: the elements of a vector are in consecutive
// registers, so a value that is already in another vector is moved. The figures are ptxas' machine instructions of the
// whole kernel, checked where it is at hand.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::vector_tuples_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Case {
  const char* name;
  std::string stores;
  uint64_t by_ptxas;
};

// To places 16 bytes apart; %r2 to %r5 are loaded one by one, %r6 to %r9 together, %r10 is a parameter.
std::string store(const char* type, const char* elements, int place) {
  return "st.global." + std::string(type) + " [%rd1+" + std::to_string(16 * place) + "], {" + elements + "};\n";
}

std::string stores(const char* type, std::initializer_list<const char*> all) {
  std::string text;
  int place = 0;
  for (const char* elements : all)
    text += store(type, elements, place++);
  return text;
}

constexpr const char *abcd = "%r2, %r3, %r4, %r5", *loaded = "%r6, %r7, %r8, %r9", *twice_two = "%r2, %r2, %r3, %r3";

std::vector<Case> cases() {
  return {
      {"four values", stores("v4.u32", {abcd}), 12},
      {"four values twice", stores("v4.u32", {abcd, abcd}), 13},
      {"four values and reversed", stores("v4.u32", {abcd, "%r5, %r4, %r3, %r2"}), 17},
      {"one value four times", stores("v4.u32", {"%r2, %r2, %r2, %r2"}), 12},
      {"two values twice", stores("v4.u32", {twice_two}), 12},
      {"two values twice, four stores", stores("v4.u32", {twice_two, twice_two, twice_two, twice_two}), 27},
      {"a pair and reversed", stores("v2.u32", {"%r2, %r3", "%r3, %r2"}), 13},
      {"pairs with one value in common", stores("v2.u32", {"%r2, %r3", "%r2, %r4"}), 13},
      {"zeros between values", stores("v4.u32", {"%r2, 0, %r3, 0"}), 12},
      {"zeros after values", stores("v4.u32", {"%r2, 0, 0, 0", "%r3, 0, 0, 0"}), 15},
      {"literals after values", stores("v4.u32", {"%r2, %r3, 1, 2", "%r4, %r5, 1, 2"}), 17},
      {"a parameter twice", stores("v4.u32", {"%r2, %r3, %r10, %r10"}), 12},
      {"loaded and stored together", stores("v4.u32", {loaded}), 9},
      {"loaded together, reversed", stores("v4.u32", {"%r9, %r8, %r7, %r6"}), 13},
      {"loaded together, stored in halves", stores("v2.u32", {"%r6, %r7", "%r8, %r9"}), 10},
      {"loaded together, the middle stored",
       stores("v2.u32", {"%r7, %r8"}) + "st.global.u32 [%rd1+32], %r6;\n" + "st.global.u32 [%rd1+48], %r9;\n", 13},
      {"loaded together, one not stored", stores("v4.u32", {"%r6, %r7, %r8, %r2"}), 10},
      {"64 bits, one value twice", stores("v2.u64", {"%rd4, %rd4"}), 11},
      {"64 bits, a pair and reversed", stores("v2.u64", {"%rd4, %rd5", "%rd5, %rd4"}), 15},
  };
}

std::string kernel(const Case& one) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
         ".reg .b32 %r<12>; .reg .b64 %rd<6>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r10, [p]; mov.u32 %r1, %tid.x;\n"
         "mul.wide.u32 %rd3, %r1, 64; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n"
         "ld.global.u32 %r2, [%rd2]; ld.global.u32 %r3, [%rd2+8]; ld.global.u32 %r4, [%rd2+16];\n"
         "ld.global.u32 %r5, [%rd2+24]; ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd2+32];\n"
         "ld.global.u64 %rd4, [%rd2+64]; ld.global.u64 %rd5, [%rd2+80];\n" +
         one.stores + "ret;\n}\n";
}

} // namespace

TEST_CASE("moves into the registers of vector stores") {
  const bool has_ptxas = find_ptxas().ok();
  if (!has_ptxas) MESSAGE("figures not checked: no ptxas");
  for (const Case& one : cases()) {
    INFO(std::string(one.name));
    const std::string text = kernel(one);
    ReadText read(text);
    REQUIRE_MESSAGE(read.ok(), read.messages());
    Function& function = *read.module->functions.front();
    REQUIRE(construct_ssa(function).ok());
    CHECK(lower(function, 80).static_instructions() == one.by_ptxas);
    if (!has_ptxas) continue;
    const Result<FiguresByFunction> real = machine_figures(text, "sm_80");
    REQUIRE(real.ok());
    CHECK(real->at("k").instructions == one.by_ptxas);
  }
}

// A literal is moved once for all equal vectors; a value that is stored twice at once, every time.
TEST_CASE("vectors of one literal share their registers") {
  const char* ones = "%r2, %r2, %r2, %r2";
  std::string text = kernel({"", stores("v4.u32", {ones, ones, ones, ones}), 0});
  const std::string load = "ld.global.u32 %r2, [%rd2];";
  text.replace(text.find(load), load.size(), "mov.u32 %r2, 1;");
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  Function& function = *read.module->functions.front();
  REQUIRE(construct_ssa(function).ok());
  Lowering lowering = lower(function, 80);
  // ptxas 13.0: four moves and four stores.
  uint64_t weights = 0;
  for (InstructionId id : function.instructions.ids())
    if (function.is_opcode(id, Opcode::st) || function.is_opcode(id, Opcode::mov)) weights += lowering.cost(id).weight;
  CHECK(weights == 9); // and that of %tid.x
}

} // namespace ptxrewrite::tests::vector_tuples_test
