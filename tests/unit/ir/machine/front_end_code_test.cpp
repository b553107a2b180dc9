// Control flow as front ends other than nvcc write it, against ptxas: which spellings of a loop's end are copied, jumps
// to jumps, blocks in the order of statements, functions whose address is taken.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace ptxrewrite::tests::front_end_code_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Counts {
  int by_ptxas = 0, estimated = 0;
};

Counts counts_of(const std::string& text, uint32_t capability) {
  Result<FiguresByFunction> real = machine_figures(text, "sm_" + std::to_string(capability));
  REQUIRE_MESSAGE(real.ok(), text);
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  uint32_t estimated = 0;
  for (const std::unique_ptr<Function>& function : read.module->functions)
    REQUIRE(construct_ssa(*function).ok());
  for (const std::unique_ptr<Function>& function : read.module->functions)
    if (function->is_entry) estimated = lower(*function, capability).static_instructions();
  return {static_cast<int>(real->at("k").instructions), static_cast<int>(estimated)};
}

std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_75\n.address_size 64\n"
         ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
         ".reg .pred %p<5>; .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<10>;\n"
         "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];\n"
         "cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2; mov.u32 %r2, 0;\n" +
         body + "ret;\n}\n";
}

} // namespace

TEST_CASE("a loop is copied or not, by how its end is written") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string work = "ld.global.f32 %f1, [%rd1]; add.f32 %f1, %f1, 0f3F800000; st.global.f32 [%rd2], %f1;\n"
                           "add.s64 %rd1, %rd1, 16; add.s64 %rd2, %rd2, 16; add.s32 %r2, %r2, 1;\n";
  for (const std::string limit : {"%r1", "12"}) {
    const std::string below = "setp.lt.s32 %p2, %r2, " + limit + ";\n",
                      above = "setp.ge.s32 %p2, %r2, " + limit + ";\n";
    const std::vector<std::pair<const char*, std::string>> spellings = {
        {"back where it holds", "L:\n" + work + below + "@%p2 bra L;\n"},
        {"back where it does not hold", "L:\n" + work + above + "@!%p2 bra L;\n"},
        {"out over the jump back", "L:\n" + work + above + "@%p2 bra E;\nbra L;\nE:\n"},
        {"out over the jump back, negated", "L:\n" + work + below + "@!%p2 bra E;\nbra L;\nE:\n"},
        {"out at the start", "L:\n" + above + "@%p2 bra E;\n" + work + "bra L;\nE:\n"},
        {"out at the start, negated", "L:\n" + below + "@!%p2 bra E;\n" + work + "bra L;\nE:\n"},
        {"two jumps at the start", "L:\n" + below + "@%p2 bra B;\nbra E;\nB:\n" + work + "bra L;\nE:\n"},
        {"two jumps at the start, negated", "L:\n" + above + "@!%p2 bra B;\nbra E;\nB:\n" + work + "bra L;\nE:\n"},
    };
    int copied = 0;
    for (uint32_t capability : {75U, 80U, 90U})
      for (const auto& [name, text] : spellings) {
        const Counts counts = counts_of(kernel(text), capability);
        INFO("sm_" << capability << ", limit " << limit << ", " << std::string(name) << ": " << counts.by_ptxas
                   << " by ptxas, " << counts.estimated << " estimated");
        constexpr int once = 30; // instructions of the kernel with its loop once, at most
        CHECK((counts.estimated > once) == (counts.by_ptxas > once));
        CHECK(std::abs(counts.estimated - counts.by_ptxas) * 4 <= counts.by_ptxas);
        copied += counts.by_ptxas > once;
      }
    CHECK(copied == 9);
  }
}

TEST_CASE("a loop that is left over its jump back is copied where blocks are ordered anew") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string
      loop = "mov.u32 %r2, 0; L: ld.global.f32 %f1, [%rd1]; add.f32 %f3, %f3, %f1; ld.global.f32 %f2, [%rd1+4];\n"
             "add.f32 %f3, %f3, %f2; add.s64 %rd1, %rd1, 16; add.s32 %r2, %r2, 1;\n"
             "setp.eq.s32 %p2, %r2, %r1; @%p2 bra E; bra L; E: ",
      other = "mov.u32 %r3, 0; bra H; F: add.s32 %r3, %r3, 1; setp.eq.s32 %p3, %r3, %r1; @%p3 bra X;\n"
              "H: st.global.f32 [%rd2+8], %f3; add.s64 %rd2, %rd2, 4; bra F; X: ",
      plain_loop = "mov.u32 %r4, 0; P: .pragma \"nounroll\"; st.global.f32 [%rd2+12], %f3;\n"
                   "add.s64 %rd2, %rd2, 4; add.s32 %r4, %r4, 1; setp.ne.s32 %p4, %r4, %r1; @%p4 bra P; ",
      store = "st.global.f32 [%rd2], %f3; ", test = "setp.gt.s32 %p1, %r1, 7; @%p1 bra W; ",
      divide = "cvt.f64.f32 %d1, %f3; div.rn.f64 %d1, %d1, %d2; cvt.rn.f32.f64 %f3, %d1; ";
  const std::vector<std::pair<std::string, bool>> bodies = {
      {loop + store, false},
      // A loop whose header is not its first block in the text, anywhere in the kernel.
      {other + loop + store, true},
      {loop + store + other, true},
      {"mov.u32 %r3, 0; bra H; F: add.s32 %r3, %r3, 1; setp.eq.s32 %p3, %r3, %r1; @%p3 bra X; H: " + loop + store +
           "bra F; X: ",
       true},
      // A backward jump over a loop causes it if it spans this loop or an earlier one, not a later one or no loop.
      {"bra S; W: st.global.f32 [%rd2+4], %f3; bra X; S: " + loop + store + test + "X: ", true},
      {"bra S; W: st.global.f32 [%rd2+4], %f3; bra X; S: " + plain_loop + test + "X: " + loop + store, true},
      {loop + store + "bra S; W: st.global.f32 [%rd2+4], %f3; bra X; S: " + plain_loop + test + "X: ", false},
      {loop + store + "bra S; W: st.global.f32 [%rd2+4], %f3; bra X; S: st.global.f32 [%rd2+8], %f3; " + test + "X: ",
       false},
      // Operations that ptxas expands into code with branches.
      {loop + divide + store, true},
      {divide + loop + store, true},
      {loop + "sqrt.rn.f32 %f3, %f3; " + store, false},
  };
  for (uint32_t capability : {75U, 80U, 90U, 120U})
    for (const auto& [body, copied] : bodies) {
      std::string text = kernel("mov.f32 %f3, 0f00000000; ld.global.f64 %d2, [%rd2+800];\n" + body);
      text.replace(text.find(".reg .f32"), 0, ".reg .f64 %d<4>; ");
      if (capability == 120) text.replace(text.find(".version 8.0"), 12, ".version 8.8");
      if (capability == 120) text.replace(text.find("sm_75"), 5, "sm_120");
      const Counts counts = counts_of(text, capability);
      INFO(body << ", sm_" << capability << ": " << counts.by_ptxas << " by ptxas, " << counts.estimated
                << " estimated");
      // The same with the loop's end as nvcc writes it is always copied.
      std::string plain = text;
      plain.replace(plain.find("setp.eq.s32 %p2"), 15, "setp.ne.s32 %p2");
      plain.replace(plain.find("@%p2 bra E; bra L;"), 18, "@%p2 bra L;");
      const Counts always = counts_of(plain, capability);
      CHECK((counts.by_ptxas * 4 > always.by_ptxas * 3) == copied);
      CHECK((counts.estimated * 4 > always.estimated * 3) == copied);
    }
}

TEST_CASE("a loop counter that ptxas does not recognise") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string work = "L: ld.global.f32 %f1, [%rd1]; add.f32 %f3, %f3, %f1; add.s64 %rd1, %rd1, 16;\n";
  for (const std::string end :
       {"add.s64 %rd3, %rd3, 4; cvt.u32.u64 %r3, %rd3; setp.ne.s32 %p2, %r3, 64; @%p2 bra L;\n",
        "add.s64 %rd3, %rd3, 4; cvt.u32.u64 %r3, %rd3; setp.ne.s32 %p2, %r3, %r1; @%p2 bra L;\n",
        "add.s64 %rd3, %rd3, 4; setp.ne.s64 %p2, %rd3, 64; @%p2 bra L;\n",
        "add.s32 %r2, %r2, -4; setp.ne.s32 %p2, %r4, %r2; @%p2 bra L;\n",
        "add.s32 %r2, %r2, -4; setp.ne.s32 %p2, %r2, %r4; @%p2 bra L;\n",
        "add.s32 %r2, %r2, -4; setp.ne.s32 %p2, %r6, %r2; @%p2 bra L;\n",
        "add.s32 %r2, %r2, -4; setp.ne.s32 %p2, %r2, %r6; @%p2 bra L;\n"})
    for (uint32_t capability : {75U, 80U, 90U}) {
      const Counts counts = counts_of(
          kernel(
              "mov.b64 %rd3, 0; neg.s32 %r4, %r1; and.b32 %r5, %r1, 60; neg.s32 %r6, %r5; mov.f32 %f3, 0f00000000;\n" +
              work + end + "st.global.f32 [%rd2], %f3;\n"),
          capability);
      INFO(end << ", sm_" << capability << ": " << counts.by_ptxas << " by ptxas, " << counts.estimated
               << " estimated");
      CHECK(std::abs(counts.estimated - counts.by_ptxas) * 4 <= counts.by_ptxas);
    }
}

TEST_CASE("a loop whose limit changes is not copied") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const Counts counts = counts_of(kernel("L:\nld.global.f32 %f1, [%rd1]; st.global.f32 [%rd2], %f1;\n"
                                         "add.s64 %rd1, %rd1, 16; add.s32 %r2, %r2, 1; sub.s32 %r1, %r1, 1;\n"
                                         "setp.lt.s32 %p2, %r2, %r1; @%p2 bra L;\n"),
                                  80);
  INFO(counts.by_ptxas << " by ptxas, " << counts.estimated << " estimated");
  CHECK(counts.by_ptxas < 30);
  CHECK(std::abs(counts.estimated - counts.by_ptxas) <= 3);
}

TEST_CASE("blocks in the order of statements, with two jumps at their ends, need no more jumps") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  std::string sums; // too long for predicates
  for (int i = 0; i < 14; ++i)
    sums += "fma.rn.f32 %f1, %f1, %f1, %f2;\n";
  const std::string one = "ld.global.f32 %f1, [%rd1];\n" + sums + "st.global.f32 [%rd2], %f1;\n",
                    two = "ld.global.f32 %f1, [%rd1+4];\n" + sums + "st.global.f32 [%rd2+4], %f1;\n";
  const std::string test = "setp.lt.s32 %p1, %r1, 5;\n";
  const std::string straight = kernel(test + "@%p1 bra A;\n" + two + "bra E;\nA:\n" + one + "E:\n");
  const std::string scattered =
      kernel(test + "@%p1 bra A;\nbra B;\nE: bra X;\nA:\n" + one + "bra E;\nB:\n" + two + "bra E;\nX:\n");
  for (uint32_t capability : {75U, 80U, 90U}) {
    const Counts a = counts_of(straight, capability), b = counts_of(scattered, capability);
    INFO("sm_" << capability << ": " << a.by_ptxas << ", " << b.by_ptxas << " by ptxas, " << a.estimated << ", "
               << b.estimated << " estimated");
    CHECK(a.by_ptxas == b.by_ptxas);
    CHECK(a.estimated == b.estimated);
  }
}

TEST_CASE("code of a function whose address is taken counts") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  std::string sums;
  for (int i = 0; i < 40; ++i)
    sums += "fma.rn.f32 %f1, %f1, %f2, %f1;\n";
  const std::string function =
      ".func f(.param .b64 at)\n{\n.reg .b64 %rd<2>; .reg .f32 %f<3>;\nld.param.u64 %rd1, [at]; ld.f32 %f1, [%rd1];\n"
      "ld.f32 %f2, [%rd1+4];\n" +
      sums + "st.f32 [%rd1], %f1; ret;\n}\n";
  std::string text = kernel("mov.u64 %rd3, f; st.global.u64 [%rd1], %rd3;\n");
  text.insert(text.find(".visible"), function);
  const Counts counts = counts_of(text, 80);
  INFO(counts.by_ptxas << " by ptxas, " << counts.estimated << " estimated");
  CHECK(counts.by_ptxas > 40);
  CHECK(counts.estimated > 40);
}

} // namespace ptxrewrite::tests::front_end_code_test
