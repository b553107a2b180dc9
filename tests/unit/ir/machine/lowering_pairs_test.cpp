// Two ways to write the same computation, against ptxas: the longer one, and the difference. Each pair is one change
// that rewritings make and that assemblers may or may not undo.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace ptxrewrite::tests::lowering_pairs_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::string text_of(const std::string& body, const std::string& directive) {
  return R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n, .param .u64 q) )" +
         directive + R"(
{
.reg .pred %p<9>; .reg .b32 %r<60>; .reg .b64 %rd<20>; .reg .f32 %f<9>;
ld.param.u64 %rd1, [p]; ld.param.u32 %r50, [n]; ld.param.u64 %rd9, [q];
cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd9, %rd9;
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
ld.global.u32 %r10, [%rd1]; ld.global.u32 %r11, [%rd1+4]; ld.global.u32 %r12, [%rd1+8]; ld.global.u32 %r13, [%rd1+12];
ld.global.u64 %rd10, [%rd1+16]; ld.global.u64 %rd11, [%rd1+24];
)" + body +
         R"(
st.global.u32 [%rd1+100], %r10; st.global.u32 [%rd1+104], %r11; st.global.u32 [%rd1+108], %r12;
st.global.u32 [%rd1+112], %r13; st.global.u64 [%rd1+120], %rd10; st.global.u64 [%rd1+128], %rd11;
ret;
}
)";
}

struct Pair {
  const char* name;
  std::string before, after;
  const char* directive = ""; // of the second version
};

const char* const shuffles = "shfl.sync.down.b32 %r40, %r10, 1, 31, -1; add.s32 %r10, %r10, %r40;\n"
                             "shfl.sync.down.b32 %r40, %r10, 2, 31, -1; add.s32 %r10, %r10, %r40;\n"
                             "shfl.sync.down.b32 %r40, %r10, 4, 31, -1; add.s32 %r10, %r10, %r40;\n";

std::string loop(const std::string& body) {
  return "again: .pragma \"nounroll\";\n" + body +
         "st.volatile.global.u32 [%rd9], %r12; setp.lt.s32 %p1, %r12, %r13; @%p1 bra again;\n";
}

// Predicates that are read in two places each, `again` of them recomputed for the second place.
std::string kept_predicates(int count, int again) {
  std::string body = ".reg .pred %kept<20>;\n";
  for (int place = 0; place < 2; ++place) {
    for (int i = place == 0 ? 0 : count - again; i < count; ++i)
      body += "setp.gt.s32 %kept" + std::to_string(i) + ", %r10, " + std::to_string(100 * i + 7) + ";\n";
    for (int i = 0; i < count; ++i)
      body += "@%kept" + std::to_string(i) + " st.volatile.global.u32 [%rd9+" + std::to_string(4 * i + 1000 * place) +
              "], %r11;\n";
    body += "bar.sync 0; setp.gt.s32 %p1, %r13, " + std::to_string(place) + "; @%p1 bra end;\n";
  }
  return body + "end:\n";
}

// Long: a table.
std::vector<Pair> pairs() {
  const std::string warps = "setp.gt.u32 %p1, %r1, 31;", guarded = std::string("@%p1 bra end;\n") + shuffles + "end:\n";
  const std::string divided = ".reg .f64 %fd<5>; mov.b64 %fd1, %rd10; mov.b64 %fd2, %rd11;";
  const std::string block = "mov.u32 %r42, %ctaid.x; mul.lo.s32 %r41, %r42, %r50;";
  const std::string uniform = std::string("@%p1 bra.uni end;\n") + shuffles + "end:\n";
  const std::string once = "xor.b32 %r40, %r10, %r11; mul.lo.s32 %r41, %r40, %r50; add.s32 %r42, %r41, %r12; "
                           "st.volatile.global.u32 [%rd9], %r42;\n";
  const std::string slots = ".local .align 8 .b8 slots[64];\n";
  std::string stores;
  for (int i = 1; i < 14; ++i)
    stores += "st.volatile.global.u32 [%rd9+" + std::to_string(4 * i) + "], %r12;\n";
  return {
      {"a branch that all lanes take together", warps + guarded, warps + uniform},
      {"whole warps of a block whose shape is known", warps + guarded, warps + guarded, ".reqntid 256, 1, 1"},
      {"half warps of a block whose shape is known", "setp.gt.u32 %p1, %r1, 47;" + guarded,
       "setp.gt.u32 %p1, %r1, 47;" + guarded, ".reqntid 256, 1, 1"},
      {"the number of the warp", "shr.u32 %r41, %r1, 5; setp.eq.u32 %p1, %r41, %r12;" + guarded,
       "shr.u32 %r41, %r1, 5; setp.eq.u32 %p1, %r41, %r50;" + guarded, ".reqntid 256, 1, 1"},
      {"wide multiply-add by a power of two", "mul.wide.u32 %rd3, %r10, 8; add.s64 %rd10, %rd9, %rd3;",
       "mad.wide.u32 %rd10, %r10, 8, %rd9;"},
      {"wide multiply-add", "mul.wide.u32 %rd3, %r10, %r11; add.s64 %rd10, %rd10, %rd3;",
       "mad.wide.u32 %rd10, %r10, %r11, %rd10;"},
      {"two wide multiply-adds of one product",
       "mul.wide.s32 %rd3, %r10, 8; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd3;",
       "mad.wide.s32 %rd10, %r10, 8, %rd10; mad.wide.s32 %rd11, %r10, 8, %rd11;"},
      {"the same, by no power of two",
       "mul.wide.u32 %rd3, %r10, 12; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd3;",
       "mad.wide.u32 %rd10, %r10, 12, %rd10; mad.wide.u32 %rd11, %r10, 12, %rd11;"},
      {"a minimum of the block's own by a choice", block + "min.s32 %r40, %r41, 5; add.s32 %r10, %r10, %r40;",
       block + "setp.lt.s32 %p1, %r41, 5; selp.b32 %r40, %r41, 5, %p1; add.s32 %r10, %r10, %r40;"},
      {"a sign made by hand", "cvt.s64.s32 %rd3, %r50; add.s64 %rd10, %rd10, %rd3;",
       "shr.s32 %r40, %r50, 31; mov.b64 %rd3, {%r50, %r40}; add.s64 %rd10, %rd10, %rd3;"},
      {"one sign for two sums", "cvt.s64.s32 %rd3, %r10; add.s64 %rd10, %rd10, %rd3;",
       "cvt.s64.s32 %rd3, %r10; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd3;"},
      {"two signs in one sum", "cvt.s64.s32 %rd3, %r10; cvt.u64.u32 %rd4, %r11; add.s64 %rd10, %rd3, %rd4;",
       "cvt.s64.s32 %rd3, %r10; cvt.s64.s32 %rd4, %r11; add.s64 %rd10, %rd3, %rd4;"},
      {"a sign that is taken away", "cvt.s64.s32 %rd3, %r10; sub.s64 %rd10, %rd3, %rd10;",
       "cvt.s64.s32 %rd3, %r10; sub.s64 %rd10, %rd10, %rd3;"},
      {"a shift for two sums", "shl.b64 %rd3, %rd9, 3; add.s64 %rd10, %rd10, %rd3; xor.b64 %rd11, %rd11, %rd10;",
       "shl.b64 %rd3, %rd9, 3; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd3;"},
      {"two equal shifts for a sum each",
       "shl.b64 %rd3, %rd9, 3; shl.b64 %rd4, %rd9, 3; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd4;",
       "shl.b64 %rd3, %rd9, 3; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd3;"},
      {"a parameter at an address in a register", "ld.param.u32 %r40, [n]; add.s32 %r10, %r10, %r40;",
       "mov.b64 %rd3, n; ld.param.u32 %r40, [%rd3]; add.s32 %r10, %r10, %r40;"},
      {"signs made by hand in two sums",
       "cvt.s64.s32 %rd3, %r10; add.s64 %rd10, %rd10, %rd3; add.s64 %rd11, %rd11, %rd3;",
       "shr.s32 %r40, %r10, 31; mov.b64 %rd3, {%r10, %r40}; add.s64 %rd10, %rd10, %rd3; shr.s32 %r41, %r10, 31;"
       "mov.b64 %rd4, {%r10, %r41}; add.s64 %rd11, %rd11, %rd4;"},
      {"a zero word in logic", "xor.b64 %rd10, %rd10, %rd11;", "cvt.u64.u32 %rd3, %r10; xor.b64 %rd10, %rd10, %rd3;"},
      {"a long product and a sum", "mul.lo.s64 %rd3, %rd10, %rd11; xor.b64 %rd10, %rd10, %rd3;",
       "mul.lo.s64 %rd3, %rd10, %rd11; add.s64 %rd10, %rd10, %rd3;"},
      {"a long product by a literal", "mul.lo.s64 %rd3, %rd10, %rd11; add.s64 %rd10, %rd10, %rd3;",
       "mul.lo.s64 %rd3, %rd11, 12; add.s64 %rd10, %rd10, %rd3;"},
      {"less than zero in 64 bits", "setp.lt.s64 %p1, %rd11, %rd10; selp.b32 %r10, %r12, %r13, %p1;",
       "setp.lt.s64 %p1, %rd11, 0; selp.b32 %r10, %r12, %r13, %p1;"},
      {"a pointer that a loop moves on",
       loop("add.s32 %r11, %r11, 1; mul.wide.s32 %rd3, %r11, 4; add.s64 %rd4, %rd9, %rd3; ld.global.u32 %r40, [%rd4];"
            "add.s32 %r12, %r12, %r40;"),
       "add.s64 %rd4, %rd9, %rd10;" +
           loop("ld.global.u32 %r40, [%rd4]; add.s64 %rd4, %rd4, 4; add.s32 %r12, %r12, %r40;")},
      {"another division in 64 bits", "div.s64 %rd10, %rd10, %rd11;",
       "div.s64 %rd3, %rd10, %rd11; div.s64 %rd11, %rd11, %rd10; mov.u64 %rd10, %rd3;"},
      {"another exact division", divided + "div.rn.f64 %fd3, %fd1, %fd2; mov.b64 %rd10, %fd3;",
       divided + "div.rn.f64 %fd3, %fd1, %fd2; div.rn.f64 %fd4, %fd2, %fd1; mov.b64 %rd10, %fd3; mov.b64 %rd11, %fd4;"},
      {"a product in two sums", "mul.lo.s32 %r40, %r10, %r11; add.s32 %r12, %r40, %r12; add.s32 %r13, %r40, %r13;",
       "mad.lo.s32 %r12, %r10, %r11, %r12; mad.lo.s32 %r13, %r10, %r11, %r13;"},
      {"a product with a parameter in front of a loop",
       "mul.lo.s32 %r40, %r10, %r50;" + loop("add.s32 %r12, %r12, %r40;"), loop("mad.lo.s32 %r12, %r10, %r50, %r12;")},
      {"a product in front of a loop", "mul.lo.s32 %r40, %r10, %r11;" + loop("add.s32 %r12, %r12, %r40;"),
       loop("mad.lo.s32 %r12, %r10, %r11, %r12;")},
      {"a product is taken away", "mul.lo.s32 %r40, %r10, %r11; add.s32 %r12, %r40, %r12;",
       "mul.lo.s32 %r40, %r10, %r11; sub.s32 %r12, %r12, %r40;"},
      {"something is taken from a product", "mul.lo.s32 %r40, %r10, %r11; add.s32 %r12, %r40, %r12;",
       "mul.lo.s32 %r40, %r10, %r11; sub.s32 %r12, %r40, %r12;"},
      {"two products with one factor are taken away",
       "mul.lo.s32 %r40, %r10, %r11; sub.s32 %r11, %r13, %r40; mul.lo.s32 %r41, %r12, %r13; sub.s32 %r13, %r12, %r41;",
       "mul.lo.s32 %r40, %r10, %r11; sub.s32 %r11, %r13, %r40; mul.lo.s32 %r41, %r10, %r13; sub.s32 %r13, %r12, %r41;"},
      {"a choice by bits",
       "and.b32 %r40, %r10, %r11; not.b32 %r41, %r10; and.b32 %r42, %r41, %r12; or.b32 %r13, %r40, %r42;",
       "lop3.b32 %r13, %r10, %r11, %r12, 0xca;"},
      {"a local variable of 32-bit words", "bar.sync 0; mov.b32 %r12, %r10; mov.b32 %r13, %r11;",
       slots + "st.local.b32 [slots+4], %r10; st.local.b32 [slots+8], %r11; bar.sync 0; ld.local.b32 %r12, [slots+4]; "
               "ld.local.b32 %r13, [slots+8];"},
      {"a local variable by its address", "bar.sync 0; mov.b32 %r12, %r10;",
       slots +
           "mov.u64 %rd5, slots; st.local.b32 [%rd5+4], %r10; bar.sync 0; add.s64 %rd6, %rd5, 4; ld.local.b32 %r12, "
           "[%rd6];"},
      {"a local variable of words of two sizes", "bar.sync 0; mov.b32 %r12, %r10; mov.b64 %rd11, %rd10;",
       slots + "st.local.b32 [slots], %r10; st.local.b64 [slots+8], %rd10; bar.sync 0; ld.local.b32 %r12, [slots]; "
               "ld.local.b64 %rd11, [slots+8];"},
      {"nine predicates, three of them compared again", kept_predicates(9, 0), kept_predicates(9, 3)},
      {"a predicate in a local variable", "setp.gt.s32 %p1, %r10, 3; bar.sync 0; selp.b32 %r12, %r12, %r13, %p1;",
       slots + "setp.gt.s32 %p1, %r10, 3; selp.b32 %r40, 1, 0, %p1; st.local.b32 [slots], %r40; bar.sync 0; "
               "ld.local.b32 %r41, [slots]; setp.ne.s32 %p2, %r41, 0; selp.b32 %r12, %r12, %r13, %p2;"},
      {"a sum again, behind a barrier and in a branch",
       once + "bar.sync 0; setp.gt.s32 %p1, %r13, 9; @%p1 bra end; st.volatile.global.u32 [%rd9], %r42;" + stores +
           "end:\n",
       once +
           "bar.sync 0; setp.gt.s32 %p1, %r13, 9; @%p1 bra end; xor.b32 %r43, %r10, %r11; mul.lo.s32 %r44, %r43, "
           "%r50; add.s32 %r45, %r44, %r12; st.volatile.global.u32 [%rd9], %r45;" +
           stores + "end:\n"},
      {"logic on four inputs", "and.b32 %r40, %r10, %r11; or.b32 %r41, %r40, %r12; xor.b32 %r13, %r41, %r13;",
       "and.b32 %r40, %r10, %r11; or.b32 %r13, %r40, %r12;"},
  };
}

// Numbers that are known at assembly in the second version.
std::vector<Pair> known_numbers() {
  const char* const block_of_256 = ".reqntid 256, 1, 1";
  const std::string branch =
      "@%p1 bra end; st.volatile.global.u32 [%rd9+4], %r50; st.volatile.global.u32 [%rd9+8], %r50; "
      "st.volatile.global.u32 [%rd9+12], %r50; st.volatile.global.u32 [%rd9+16], %r50; bar.sync 0; end:";
  return {
      {"blocks that are a row of 256 threads",
       "mov.u32 %r40, %tid.y; mov.u32 %r41, %ntid.x; mad.lo.s32 %r12, %r40, %r41, %r1;",
       "mov.u32 %r40, 0; mov.u32 %r41, 256; mad.lo.s32 %r12, %r40, %r41, %r1;"},
      {"an index that the directive leaves no choice", "mov.u32 %r40, %tid.y; mad.lo.s32 %r12, %r40, %r11, %r10;",
       "mov.u32 %r40, %tid.y; mad.lo.s32 %r12, %r40, %r11, %r10;", block_of_256},
      {"sums with zero",
       "mov.u32 %r40, %ctaid.y; add.s32 %r41, %r40, %r10; xor.b32 %r12, %r41, %r11; mul.lo.s32 %r13, %r41, %r13;",
       "mov.u32 %r40, 0; add.s32 %r41, %r40, %r10; xor.b32 %r12, %r41, %r11; mul.lo.s32 %r13, %r41, %r13;"},
      {"a branch that always goes one way", "setp.gt.s32 %p1, %r50, 128;" + branch,
       "mov.u32 %r40, 256; setp.gt.s32 %p1, %r40, 128;" + branch},
      {"a branch that never does", "setp.gt.s32 %p1, %r50, 128;" + branch,
       "mov.u32 %r40, 64; setp.gt.s32 %p1, %r40, 128;" + branch},
      {"a branch on bits that no thread's index has", "shr.u32 %r40, %r10, 8; setp.eq.s32 %p1, %r40, 0;" + branch,
       "shr.u32 %r40, %r1, 8; setp.eq.s32 %p1, %r40, 0;" + branch, block_of_256},
      {"a branch on a limit above all threads", "setp.lt.u32 %p1, %r1, 256;" + branch,
       "setp.lt.u32 %p1, %r1, 256;" + branch, block_of_256},
      {"a limit that is the last thread's index", "setp.gt.u32 %p1, %r1, 255; selp.b32 %r12, %r11, %r13, %p1;",
       "setp.gt.u32 %p1, %r1, 255; selp.b32 %r12, %r11, %r13, %p1;", block_of_256},
      {"a limit with a bit above all threads", "setp.gt.u32 %p1, %r1, 511; selp.b32 %r12, %r11, %r13, %p1;",
       "setp.gt.u32 %p1, %r1, 511; selp.b32 %r12, %r11, %r13, %p1;", block_of_256},
      {"an index below zero", "setp.lt.s32 %p1, %r1, 0; selp.b32 %r12, %r11, %r13, %p1;",
       "setp.lt.s32 %p1, %r1, 0; selp.b32 %r12, %r11, %r13, %p1;", block_of_256},
      {"the same number from two ways",
       "setp.gt.s32 %p2, %r10, 3; mov.u32 %r40, 5; @%p2 bra join; mov.u32 %r40, 6; st.volatile.global.u32 [%rd9], "
       "%r50; bar.sync 0; join: setp.gt.s32 %p1, %r40, 5;" +
           branch,
       "setp.gt.s32 %p2, %r10, 3; mov.u32 %r40, 5; @%p2 bra join; mov.u32 %r40, 5; st.volatile.global.u32 [%rd9], "
       "%r50; bar.sync 0; join: setp.gt.s32 %p1, %r40, 5;" +
           branch},
      {"an index divided by a power of two, as compilers do",
       "shr.s32 %r40, %r1, 31; shr.u32 %r41, %r40, 27; add.s32 %r42, %r1, %r41; shr.s32 %r12, %r42, 5;",
       "shr.s32 %r40, %r1, 31; shr.u32 %r41, %r40, 27; add.s32 %r42, %r1, %r41; shr.s32 %r12, %r42, 5;", block_of_256},
      {"bits that have been masked", "and.b32 %r40, %r10, 31; xor.b32 %r41, %r40, %r11; mul.lo.s32 %r12, %r41, %r13;",
       "and.b32 %r40, %r10, 31; shr.u32 %r41, %r40, 5; xor.b32 %r42, %r41, %r11; mul.lo.s32 %r12, %r42, %r13;"},
      {"a guard that holds", "setp.gt.s32 %p1, %r10, 2; @%p1 add.s32 %r12, %r12, %r11;",
       "mov.u32 %r40, 3; setp.gt.s32 %p1, %r40, 2; @%p1 add.s32 %r12, %r12, %r11;"},
      {"a guard that does not", "setp.gt.s32 %p1, %r10, 2; @%p1 add.s32 %r12, %r12, %r11;",
       "mov.u32 %r40, 1; setp.gt.s32 %p1, %r40, 2; @%p1 add.s32 %r12, %r12, %r11;"},
      {"a choice between two that is known", "setp.gt.s32 %p1, %r10, 2; selp.b32 %r12, %r11, %r13, %p1;",
       "mov.u32 %r40, 3; setp.gt.s32 %p1, %r40, 2; selp.b32 %r12, %r11, %r13, %p1;"},
      {"a condition or one that is false",
       "setp.gt.s32 %p1, %r10, 2; setp.gt.s32 %p2, %r11, 2; or.pred %p3, %p1, %p2; selp.b32 %r12, %r11, %r13, %p3;",
       "setp.gt.s32 %p1, 1, 2; setp.gt.s32 %p2, %r11, 2; or.pred %p3, %p1, %p2; selp.b32 %r12, %r11, %r13, %p3;"},
      {"a condition and one that is false",
       "setp.gt.s32 %p1, %r10, 2; setp.gt.s32 %p2, %r11, 2; and.pred %p3, %p1, %p2; selp.b32 %r12, %r11, %r13, %p3;",
       "setp.gt.s32 %p1, 1, 2; setp.gt.s32 %p2, %r11, 2; and.pred %p3, %p1, %p2; selp.b32 %r12, %r11, %r13, %p3;"},
      {"a wide product with zero", "mul.wide.u32 %rd3, %r11, 4; add.s64 %rd10, %rd11, %rd3;",
       "mov.u32 %r40, 0; mul.wide.u32 %rd3, %r40, 4; add.s64 %rd10, %rd11, %rd3;"},
      {"a wide multiply-add of zero", "mad.wide.u32 %rd10, %r11, 4, %rd11;", "mad.wide.u32 %rd10, %r11, 0, %rd11;"},
  };
}

// Spellings that an assembler treats alike, or would without the instructions in between.
std::vector<Pair> spellings() {
  const std::string divide = "mov.b32 %f2, %r10; mov.b32 %f3, %r11; div.rn.f32 %f1, %f2, %f3; mov.b32 %r10, %f1;\n";
  const std::string count = "popc.b32 %r40, %r12; st.volatile.global.u32 [%rd9], %r40;\n";
  const std::string other = "popc.b32 %r40, %r11; st.volatile.global.u32 [%rd9], %r40;\n";
  const std::string branch = "setp.ne.s32 %p1, %r13, 3; @%p1 bra over; st.volatile.global.u32 [%rd9], %r13;\n";
  const std::string over = "bar.sync 0; over:\n";
  const std::string product = "mul.lo.s32 %r40, %r10, %r11; xor.b32 %r42, %r13, %r40;";
  const std::string sum = "add.s32 %r40, %r10, %r11;";
  const std::string places = ".local .align 8 .b8 places[400]; mov.b64 %rd12, places;\n";
  const std::string read = "ld.local.u32 %r12, [%rd14];";
  return {
      {"a long sum of which the low word is read", "add.s32 %r12, %r10, %r11;",
       "add.s64 %rd12, %rd10, %rd11; cvt.u32.u64 %r12, %rd12;"},
      {"a long product of which the low word is read", "mul.lo.s32 %r12, %r10, %r11;",
       "mul.lo.s64 %rd12, %rd10, %rd11; cvt.u32.u64 %r12, %rd12;"},
      {"logic and a shift, of which the low word is read", "xor.b32 %r40, %r10, %r11; shl.b32 %r12, %r40, 3;",
       "xor.b64 %rd12, %rd10, %rd11; shl.b64 %rd13, %rd12, 3; cvt.u32.u64 %r12, %rd13;"},
      {"a place in a local variable, by a shift",
       places + "mul.wide.s32 %rd13, %r11, 4; add.s64 %rd14, %rd12, %rd13;" + read,
       places + "cvt.s64.s32 %rd13, %r11; shl.b64 %rd13, %rd13, 2; add.s64 %rd14, %rd12, %rd13;" + read},
      {"a multiply-add in two", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mul.lo.s32 %r40, %r10, %r11; add.s32 %r12, %r40, %r13;"},
      {"sums of a product, by multiply-adds", product + "add.s32 %r12, %r40, %r42; add.s32 %r13, %r40, %r12;",
       product + "mad.lo.s32 %r12, %r10, %r11, %r42; mad.lo.s32 %r13, %r10, %r11, %r12;"},
      {"the smaller of a sum and another, by a choice", sum + "min.s32 %r12, %r40, %r13;",
       sum + "setp.lt.s32 %p1, %r40, %r13; selp.b32 %r12, %r40, %r13, %p1;"},
      {"the same, the other way round", sum + "min.s32 %r12, %r40, %r13;",
       sum + "setp.gt.s32 %p1, %r40, %r13; selp.b32 %r12, %r13, %r40, %p1;"},
      {"the larger, by a choice", sum + "max.u32 %r12, %r40, %r13;",
       sum + "setp.ge.u32 %p1, %r40, %r13; selp.b32 %r12, %r40, %r13, %p1;"},
      {"the smallest of three", "min.s32 %r40, %r10, %r11; max.s32 %r12, %r40, %r13;",
       "min.s32 %r40, %r10, %r11; min.s32 %r12, %r40, %r13;"},
      {"the larger of zero and the smaller of two", "min.s32 %r40, %r10, %r11; max.s32 %r12, %r40, %r13;",
       "min.s32 %r40, %r10, %r11; max.s32 %r12, %r40, 0;"},
      {"a product again, its factors swapped",
       product + "mul.lo.s32 %r41, %r10, %r11; sub.s32 %r12, %r42, %r41; add.s32 %r13, %r41, %r41;",
       product + "mul.lo.u32 %r41, %r11, %r10; sub.s32 %r12, %r42, %r41; add.s32 %r13, %r41, %r41;"},
      {"a value again behind a division", divide + count + count, count + divide + count},
      {"a value again, no division at the side", count + branch + over + other, count + branch + over + count},
      {"a value again behind a division at the side", count + branch + divide + over + other,
       count + branch + divide + over + count},
      {"a value again on another way than a division",
       count + branch + other + "bra.uni end; over:" + divide + "end:\n",
       count + branch + count + "bra.uni end; over:" + divide + "end:\n"},
  };
}

// Literals and parameters, of which an instruction can encode one.
std::vector<Pair> second_constants() {
  auto in_two_blocks = [](const std::string& operation) {
    return "setp.ne.s32 %p1, %r13, 3; @%p1 bra.uni second; ld.volatile.global.u32 %r20, [%rd9]; " + operation +
           " st.volatile.global.u32 [%rd9], %r21; bar.sync 0; second: setp.ne.s32 %p1, %r13, 4; @%p1 bra.uni end;"
           "ld.volatile.global.u32 %r20, [%rd9+4]; " +
           operation + " st.volatile.global.u32 [%rd9+4], %r21; bar.sync 0; end:";
  };
  return {
      {"a multiply-add of two literals in two blocks", in_two_blocks("mad.lo.s32 %r21, %r20, %r10, %r11;"),
       in_two_blocks("mad.lo.s32 %r21, %r20, 3, 5;")},
      {"a multiply-add of one parameter twice in two blocks", in_two_blocks("mad.lo.s32 %r21, %r20, %r10, %r11;"),
       in_two_blocks("mad.lo.s32 %r21, %r20, %r50, %r50;")},
      {"a shifted parameter in two blocks", in_two_blocks("shl.b32 %r21, %r10, %r20;"),
       in_two_blocks("shl.b32 %r21, %r50, %r20;")},
      {"a permutation of a literal", "prmt.b32 %r12, %r11, %r10, 0x7540;", "prmt.b32 %r12, 128, %r10, 0x7540;"},
      {"a permutation with a literal", "prmt.b32 %r12, %r11, %r10, 0x7540;", "prmt.b32 %r12, %r10, 128, 0x7540;"},
      {"a permutation of a parameter", "prmt.b32 %r12, %r11, %r10, 0x7540;", "prmt.b32 %r12, %r50, %r10, 0x7540;"},
      {"a multiply-add of two literals", "mad.lo.s32 %r12, %r10, %r11, %r13;", "mad.lo.s32 %r12, %r10, 3, 5;"},
      {"a multiply-add by a literal", "mad.lo.s32 %r12, %r10, %r11, %r13;", "mad.lo.s32 %r12, %r10, 3, %r13;"},
      {"a multiply-add of a parameter and a literal", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mad.lo.s32 %r12, %r10, %r50, 3;"},
      {"a multiply-add of a literal and a parameter", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mad.lo.s32 %r12, %r10, 3, %r50;"},
      {"a multiply-add of one parameter twice", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mad.lo.s32 %r12, %r10, %r50, %r50;"},
      {"a multiply-add of two parameters", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "cvt.u32.u64 %r40, %rd9; mad.lo.s32 %r12, %r10, %r50, %r40;"},
      {"a product and a sum of two literals", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mul.lo.s32 %r40, %r10, 3; add.s32 %r12, %r40, 5;"},
      {"a product by a literal and a parameter", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mul.lo.s32 %r40, %r10, 3; add.s32 %r12, %r40, %r50;"},
      {"two multiply-adds by one literal", "mad.lo.s32 %r12, %r10, %r11, %r13;",
       "mad.lo.s32 %r12, %r10, 3, 5; mad.lo.s32 %r13, %r11, 3, 7;"},
      {"a sum with a parameter and a literal", "add.s32 %r12, %r10, %r11;",
       "add.s32 %r40, %r10, %r50; add.s32 %r12, %r40, -1;"},
      {"a difference from a parameter and a literal", "add.s32 %r12, %r10, %r11;",
       "sub.s32 %r40, %r50, %r10; add.s32 %r12, %r40, -1;"},
      {"the same as a complement", "add.s32 %r12, %r10, %r11;", "not.b32 %r40, %r10; add.s32 %r12, %r40, %r50;"},
      {"a sum of two and a literal", "add.s32 %r12, %r10, %r11;", "add.s32 %r40, %r10, %r11; add.s32 %r12, %r40, -1;"},
      {"a sum with two parameters", "add.s32 %r12, %r10, %r11;",
       "cvt.u32.u64 %r41, %rd9; add.s32 %r40, %r10, %r41; add.s32 %r12, %r40, %r50;"},
      {"a sum with two literals", "add.s32 %r12, %r10, %r11;", "add.s32 %r40, %r10, 5; add.s32 %r12, %r40, 7;"},
      {"a dot product with a parameter as addend", "dp4a.s32.s32 %r12, %r10, %r11, %r13;",
       "dp4a.s32.s32 %r12, %r10, %r11, %r50;"},
      {"a dot product of a parameter", "dp4a.s32.s32 %r12, %r10, %r11, %r13;", "dp4a.s32.s32 %r12, %r50, %r11, %r13;"},
      {"a dot product of a literal, with one as addend", "dp4a.s32.s32 %r12, %r10, %r11, %r13;",
       "dp4a.s32.s32 %r12, %r10, 77, 99;"},
      {"a choice between two literals", "setp.gt.s32 %p1, %r10, %r11; selp.b32 %r12, %r10, %r13, %p1;",
       "setp.gt.s32 %p1, %r10, %r11; selp.b32 %r12, 5, 7, %p1;"},
      {"a choice between a parameter and a literal", "setp.gt.s32 %p1, %r10, %r11; selp.b32 %r12, %r10, %r13, %p1;",
       "setp.gt.s32 %p1, %r10, %r11; selp.b32 %r12, %r50, 7, %p1;"},
      {"logic with two literals", "and.b32 %r40, %r10, %r11; or.b32 %r12, %r40, %r13;",
       "and.b32 %r40, %r10, 0xff; or.b32 %r12, %r40, 0x100;"},
      {"logic with a literal and a parameter", "and.b32 %r40, %r10, %r11; or.b32 %r12, %r40, %r13;",
       "and.b32 %r40, %r10, 0xff; or.b32 %r12, %r40, %r50;"},
      {"LOP3 with two literals", "lop3.b32 %r12, %r10, %r11, %r13, 0xf8;", "lop3.b32 %r12, %r10, 0xff, 0x100, 0xf8;"},
      {"a shifted literal", "shl.b32 %r12, %r11, %r10;", "shl.b32 %r12, 1, %r10;"},
      {"a shifted parameter", "shl.b32 %r12, %r11, %r10;", "shl.b32 %r12, %r50, %r10;"},
      {"a parameter added to itself", "mov.b32 %f2, %r10; add.rn.f32 %f1, %f2, %f2; mov.b32 %r12, %f1;",
       "mov.b32 %f2, %r50; add.rn.f32 %f1, %f2, %f2; mov.b32 %r12, %f1;"},
      {"a polynomial's last step",
       "mov.b32 %f2, %r10; mov.b32 %f3, %r11; fma.rn.f32 %f1, %f2, %f3, %f3; mov.b32 %r12, %f1;",
       "mov.b32 %f2, %r10; mov.b32 %f3, %r11; fma.rn.f32 %f1, %f2, 0f40400000, 0f40A00000; mov.b32 %r12, %f1;"},
  };
}

// Parts of words, and tables of three inputs.
std::vector<Pair> parts_and_tables() {
  auto converted = [](const std::string& part) { return part + "cvt.rn.f32.u32 %f1, %r40; mov.b32 %r12, %f1;"; };
  const std::string shared = ".shared .align 8 .b8 words[4096]; mov.u32 %r40, words;";
  const std::string stored = "add.s32 %r42, %r40, %r41; st.shared.u16 [%r42], %r11; add.s32 %r43, %r42, 64; "
                             "bar.sync 0; ld.shared.u16 %r12, [%r43];";
  const std::string stride = "mov.u32 %r43, %nctaid.x; mov.u32 %r44, %ntid.x;";
  auto in_two_loops = [](const std::string& step) {
    return "setp.gt.s32 %p2, %r13, 9; @%p2 bra other;" + loop(step) +
           "bra.uni end; other: st.volatile.global.u32 [%rd9+8], %r12; again2: .pragma \"nounroll\";" + step +
           "st.volatile.global.u32 [%rd9+4], %r12; setp.lt.s32 %p1, %r12, %r13; @%p1 bra again2; end:";
  };
  return {
      {"a byte that is converted", converted("mov.b32 %r40, %r10;"), converted("and.b32 %r40, %r10, 255;")},
      {"the second byte", converted("mov.b32 %r40, %r10;"), converted("bfe.u32 %r40, %r10, 8, 8;")},
      {"a byte by a shift and a mask", converted("prmt.b32 %r40, %r10, 0, 0x4441;"),
       converted("shr.u32 %r41, %r10, 8; and.b32 %r40, %r41, 255;")},
      {"bits that are no byte", converted("and.b32 %r40, %r10, 255;"),
       converted("shr.u32 %r41, %r10, 9; and.b32 %r40, %r41, 255;")},
      {"the upper half", converted("mov.b32 %r40, %r10;"), converted("shr.u32 %r40, %r10, 16;")},
      {"a byte that is stored, too", converted("and.b32 %r40, %r10, 255;"),
       converted("and.b32 %r40, %r10, 255; mov.b32 %r13, %r40;")},
      {"a complement in two tables", "and.b32 %r12, %r10, %r12; or.b32 %r13, %r10, %r13;",
       "not.b32 %r40, %r10; and.b32 %r12, %r40, %r12; or.b32 %r13, %r40, %r13;"},
      {"a complement in a table and a sum", "and.b32 %r12, %r10, %r12; add.s32 %r13, %r10, %r13;",
       "not.b32 %r40, %r10; and.b32 %r12, %r40, %r12; add.s32 %r13, %r40, %r13;"},
      {"a table's complement in two", "or.b32 %r40, %r10, %r11; and.b32 %r12, %r40, %r12; or.b32 %r13, %r40, %r13;",
       "or.b32 %r41, %r10, %r11; not.b32 %r40, %r41; and.b32 %r12, %r40, %r12; or.b32 %r13, %r40, %r13;"},
      {"the majority of three", "lop3.b32 %r13, %r10, %r11, %r12, 0xe8;",
       "or.b32 %r40, %r10, %r11; and.b32 %r41, %r12, %r40; and.b32 %r42, %r10, %r11; or.b32 %r13, %r41, %r42;"},
      {"is a table of three zero",
       "and.b32 %r40, %r10, %r11; setp.eq.s32 %p1, %r40, 0; selp.b32 %r12, %r12, %r13, %p1;",
       "lop3.b32 %r40, %r10, %r11, %r12, 0x48; setp.eq.s32 %p1, %r40, 0; selp.b32 %r12, %r12, %r13, %p1;"},
      {"a byte beside a shifted word", "and.b32 %r41, %r11, 255; shl.b32 %r40, %r10, 7; or.b32 %r12, %r40, %r41;",
       "and.b32 %r41, %r11, 255; shl.b32 %r40, %r10, 8; or.b32 %r12, %r40, %r41; xor.b32 %r13, %r13, %r12;"},
      {"bytes side by side in one table",
       "and.b32 %r41, %r11, 255; shl.b32 %r40, %r10, 16; and.b32 %r42, %r12, 255; shl.b32 %r43, %r42, 8; "
       "or.b32 %r44, %r43, %r41; or.b32 %r12, %r44, %r40;",
       "and.b32 %r41, %r11, 255; shl.b32 %r40, %r10, 16; and.b32 %r42, %r12, 255; shl.b32 %r43, %r42, 8; "
       "lop3.b32 %r12, %r43, %r41, %r40, 0xfe;"},
      {"a parameter compared with zero", "setp.gt.s32 %p1, %r50, %r10; selp.b32 %r12, %r11, %r13, %p1;",
       "setp.gt.s32 %p1, %r50, 0; selp.b32 %r12, %r11, %r13, %p1;"},
      {"the threads of all blocks, in two loops", stride + in_two_loops("mad.lo.s32 %r12, %r43, %r44, %r12;"),
       stride + "mul.lo.s32 %r45, %r43, %r44;" + in_two_loops("add.s32 %r12, %r12, %r45;")},
      {"a shared word by its index", shared + "shl.b32 %r41, %r10, 2;" + stored,
       shared + "shl.b32 %r41, %r10, 5;" + stored},
      {"a shared half by its index", shared + "shl.b32 %r41, %r10, 3;" + stored,
       shared + "shl.b32 %r41, %r10, 1;" + stored},
      {"a parameter and one", "add.s32 %r40, %r10, %r50; add.s32 %r12, %r40, 3;",
       "add.s32 %r40, %r10, %r50; add.s32 %r12, %r40, 1;"},
      {"the same where blocks have 256 threads",
       stride + "mul.lo.s32 %r45, %r43, %r44;" + in_two_loops("add.s32 %r12, %r12, %r45;"),
       stride + "mul.lo.s32 %r45, %r43, 256;" + in_two_loops("add.s32 %r12, %r12, %r45;")},
      {"an address made global twice", "cvta.to.global.u64 %rd3, %rd9; ld.volatile.global.u32 %r12, [%rd3];",
       "cvta.to.global.u64 %rd3, %rd9; cvta.to.global.u64 %rd4, %rd9; ld.volatile.global.u32 %r12, [%rd3]; "
       "st.volatile.global.u32 [%rd4], %r12;"},
  };
}

// Warp-uniform computations: with the shape of the launch, and with a known shape.
std::vector<Pair> uniform_work() {
  const auto shape = [](std::string body) {
    return "mov.u32 %r40, %ctaid.x; mov.u32 %r41, %ntid.x; mul.lo.s32 %r42, %r40, %r41; " + body;
  };
  const auto known = [](std::string body) { return "mov.u32 %r40, %ctaid.x; mul.lo.s32 %r42, %r40, 256; " + body; };
  const auto of = [&](const char* name, const char* body) { return Pair{name, shape(body), known(body)}; };
  return {
      of("a uniform product for logic on the lanes", "xor.b32 %r10, %r42, %r10; add.s32 %r11, %r11, %r42;"),
      of("a uniform product for one sum", "add.s32 %r10, %r42, %r10;"),
      of("a uniform product for addresses",
         "mul.wide.s32 %rd5, %r42, 4; add.s64 %rd5, %rd9, %rd5; ld.global.u32 %r10, [%rd5];"),
      of("a uniform product that is stored", "xor.b32 %r10, %r42, %r10; mov.u32 %r11, %r42;"),
      of("a uniform product beside a parameter", "mad.lo.s32 %r10, %r10, %r42, %r50;"),
      of("a uniform product beside a literal", "mad.lo.s32 %r10, %r10, 7, %r42;"),
      of("two uniform factors", "mul.lo.s32 %r43, %r42, %r50; xor.b32 %r10, %r10, %r43;"),
      of("a uniform address of shared memory", "ld.shared.u32 %r10, [%r42]; xor.b32 %r11, %r11, %r42;"),
      of("a uniform distance", "shl.b32 %r10, %r10, %r42;"),
      of("a uniform number that is shifted by the lanes", "shl.b32 %r10, %r42, %r10;"),
      {"a product by a power of two, added in 64 bits",
       "mul.lo.s32 %r42, %r10, %r50; cvt.u64.u32 %rd5, %r42; add.s64 %rd10, %rd10, %rd5;",
       "mul.lo.s32 %r42, %r10, 256; cvt.u64.u32 %rd5, %r42; add.s64 %rd10, %rd10, %rd5;"},
      {"a shifted number is taken away", "shl.b32 %r42, %r10, %r11; sub.s32 %r12, %r12, %r42;",
       "shl.b32 %r42, %r10, 8; sub.s32 %r12, %r12, %r42;"},
  };
}

// Code skipped by branches, and its treatment by ptxas: predicated, behind a branch, with reconvergence after it.
std::vector<Pair> skipped_code() {
  const std::string by_whole_warps = "bar.sync 0; setp.gt.s32 %p1, %r1, 31;";
  const auto skipped = [](const std::string& test, const char* branch, int stores, const std::string& more = "") {
    std::string body = test + "@%p1 " + branch + " end;\n" + more;
    for (int i = 0; i < stores; ++i)
      body += "st.volatile.global.u32 [%rd1+" + std::to_string(200 + 4 * i) + "], %r11;\n";
    return body + "end: bar.sync 0;";
  };
  const auto in_a_row = [&](const char* name, const std::string& test, int stores, const std::string& more = "") {
    const std::string body = skipped(test, "bra", stores, more);
    return Pair{name, body, body, ".reqntid 256"};
  };
  const std::string sum = "add.s64 %rd5, %rd10, %rd11; st.volatile.global.u64 [%rd1+300], %rd5;";
  return {
      {"long code that whole warps skip, as marked", skipped(by_whole_warps, "bra", 20),
       skipped(by_whole_warps, "bra.uni", 20)},
      {"code that whole warps skip, as marked", skipped(by_whole_warps, "bra", 8),
       skipped(by_whole_warps, "bra.uni", 8)},
      in_a_row("long code that whole warps skip, in blocks of one row", by_whole_warps, 20),
      in_a_row("code that whole warps skip, in blocks of one row", by_whole_warps, 8),
      {"code that loads, alone and beside another load",
       "bar.sync 0; mov.u32 %r41, %r10;" +
           skipped("setp.gt.s32 %p1, %r1, %r50;", "bra", 0, "ld.global.u32 %r12, [%rd1+400];"),
       "bar.sync 0; ld.global.u32 %r41, [%rd1+500]; " +
           skipped("setp.gt.s32 %p1, %r1, %r50;", "bra", 0, "ld.global.u32 %r12, [%rd1+400];") + "mov.u32 %r10, %r41;"},
      in_a_row("short code that whole warps skip, in blocks of one row", by_whole_warps, 5),
      in_a_row("a sum in 64 bits that whole warps skip", by_whole_warps, 3, sum),
      in_a_row("the index by way of 64 bits, in blocks of one row",
               "bar.sync 0; cvt.s64.s32 %rd6, %r1; cvt.u32.u64 %r40, %rd6; setp.gt.s32 %p1, %r40, 31;", 20),
  };
}

int estimate(const std::string& text, uint32_t capability) {
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  REQUIRE(construct_ssa(read.function()).ok());
  return static_cast<int>(lower(read.function(), capability).static_instructions());
}

int assembled(const std::string& text, uint32_t capability) {
  Result<FiguresByFunction> figures = machine_figures(text, "sm_" + std::to_string(capability));
  REQUIRE(figures.ok());
  return static_cast<int>(figures->at("k").instructions);
}

int sign(int value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

} // namespace

TEST_CASE("differences between two ways to write the same") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  std::vector<Pair> all = pairs();
  for (const std::vector<Pair>& more :
       {known_numbers(), spellings(), second_constants(), parts_and_tables(), uniform_work(), skipped_code()})
    all.insert(all.end(), more.begin(), more.end());
  for (uint32_t capability : {75u, 80u, 90u})
    for (const Pair& pair : all) {
      const std::string before = text_of(pair.before, "");
      const std::string after = text_of(pair.after, pair.directive);
      const int real = assembled(after, capability) - assembled(before, capability);
      const int estimated = estimate(after, capability) - estimate(before, capability);
      INFO("sm_" << capability << ", " << std::string(pair.name) << ": " << real << " by ptxas, " << estimated
                 << " estimated");
      CHECK(sign(real) == sign(estimated));
      CHECK(std::abs(real - estimated) <= 2 + std::abs(real) / 4);
    }
}

} // namespace ptxrewrite::tests::lowering_pairs_test
