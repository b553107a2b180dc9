// Causes of differences that public kernels showed, each alone, against ptxas: which loops are copied, conditions as
// numbers, masks of loaded bytes, accesses under predicates, pointers in loops.
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <regex>

namespace ptxrewrite::tests::public_code_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Case {
  const char* name;
  std::string body;
  int tolerance = 1; // machine instructions
};

const std::string load = "ld.global.f32 %f2, [%rd4]; add.s64 %rd4, %rd4, 4; add.f32 %f1, %f1, %f2;\n";
const std::string count = "add.s32 %r10, %r10, 1; setp.lt.s32 %p1, %r10, ";
const std::string store = "st.global.f32 [%rd2], %f1; ret;\n";

std::string kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 m)\n{\n"
         ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<40>;\n"
         ".shared .align 16 .b8 tile[8192];\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [m];\n"
         "cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;\n"
         "mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.f32 %f1, 0f00000000; mov.u32 %r10, 0;\n"
         "mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
         "setp.lt.s32 %p4, %r3, %r2; setp.lt.s32 %p5, %r4, %r2;\n" +
         body + "}\n";
}

std::string nest(const std::string& inner, const std::string& outer) {
  return "mov.u32 %r11, 0;\nO: mov.u32 %r10, 0;\nL: " + load + count + inner + "; @%p1 bra L;\n" +
         "add.s32 %r11, %r11, 1; setp.lt.s32 %p2, %r11, " + outer + "; @%p2 bra O;\n" + store;
}

// Loops: the sizes of copied and uncopied code differ by far more than the tolerance.
std::vector<Case> loops() {
  const std::string skip =
      "@%p4 bra S; ld.shared.f32 %f3, [tile]; add.f32 %f1, %f1, %f3; st.shared.f32 [tile+4], %f1;\nS: ";
  const std::string leave = "add.s32 %r10, %r10, 1; setp.ge.s32 %p1, %r10, %r1; @%p1 bra X; bra.uni L;\n";
  return {
      {"nest of known trips", nest("8", "4"), 8},
      {"nest in a loop of unknown trips", nest("4", "%r1"), 10},
      {"nest that is too long for it", nest("32", "%r1"), 4},
      {"counter in floating point",
       "mov.f32 %f9, 0fC0400000;\nL: " + load +
           "add.f32 %f9, %f9, 0f3F800000; setp.le.f32 %p1, %f9, 0f40400000; @%p1 bra L;\n" + store,
       4},
      {"start before the last branch",
       "@%p4 bra X; mov.f32 %f1, 0f3F800000;\nL: " + load + count + "64; @%p1 bra L;\nX: " + store, 8},
      {"start behind the last branch",
       "@%p4 bra X; mov.f32 %f1, 0f3F800000; mov.u32 %r10, 0;\nL: " + load + count + "64; @%p1 bra L;\nX: " + store, 8},
      {"two entries",
       "@%p4 bra L; st.global.f32 [%rd2+8], %f1; bar.sync 0; mov.f32 %f1, 0f40000000;\nL: " + load + count +
           "%r1; @%p1 bra L;\n" + store,
       10},
      {"barrier and skipped code", "L: " + skip + "bar.sync 0;\n" + count + "%r1; @%p1 bra L;\n" + store, 5},
      {"condition in skipped code",
       "L: " + load + "@%p4 bra S; mul.f32 %f1, %f1, %f1; @%p5 bra S; mul.f32 %f1, %f1, %f1;\nS: " + count +
           "%r1; @%p1 bra L;\n" + store,
       4},
      {"jump over the return", "L: " + load + leave + "X: " + store, 5},
      {"test of this trip's counter, at the end",
       "L: " + load + "add.s32 %r11, %r10, 1; setp.lt.s32 %p1, %r10, %r1; mov.u32 %r10, %r11; @%p1 bra L;\n" + store,
       5},
      {"test of another number, at the end",
       "L: " + load + "add.s32 %r11, %r10, 100; add.s32 %r10, %r10, 4; setp.lt.s32 %p1, %r11, %r1; @%p1 bra L;\n" +
           store,
       5},
      {"test of this trip's counter, at the start",
       "L: setp.ge.s32 %p1, %r10, %r1; @%p1 bra X; " + load + "add.s32 %r10, %r10, 1; bra.uni L;\nX: " + store, 9},
      {"test of this trip's counter, known trips",
       "L: " + load + "add.s32 %r11, %r10, 1; setp.lt.s32 %p1, %r10, 15; mov.u32 %r10, %r11; @%p1 bra L;\n" + store, 5},
      {"test before the counter changes, known trips",
       "L: " + load + "setp.lt.s32 %p1, %r10, 15; add.s32 %r10, %r10, 1; @%p1 bra L;\n" + store, 5},
      {"jump to code that stands elsewhere",
       "@%p4 bra Z;\nL: " + load + leave + "Z: st.global.f32 [%rd2+4], %f1; ret;\nX: " + store, 8},
  };
}

std::vector<Case> sequences() {
  const std::string guarded =
      "mul.wide.s32 %rd6, %r3, 16; add.s64 %rd6, %rd1, %rd6; mov.u32 %r20, 0; mov.u32 %r21, 0;\n";
  const std::string loaded = "ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd4+512]; ld.global.f32 %f4, [%rd5];"
                             "setp.gt.f32 %p6, %f2, %f3; add.f32 %f5, %f4, 0f3F400000;";
  const std::string written = "st.global.f32 [%rd5], %f6; ret;\n";
  const std::string wide = "ld.global.u64 %rd6, [%rd5]; ld.global.u64 %rd7, [%rd4]; setp.gt.s64 %p6, %rd6, 77;"
                           "add.s64 %rd8, %rd6, %rd1;";
  const std::string wide_written = "st.global.u64 [%rd5], %rd9; ret;\n";
  return {
      {"wide product that dead code reads, too", "st.global.u32 [%rd5], %r3; ret;\n", 0},
      {"select of two sums", loaded + "mul.f32 %f7, %f4, %f4; selp.f32 %f6, %f5, %f7, %p6;" + written, 0},
      {"select of a sum and a loaded word", loaded + "selp.f32 %f6, %f5, %f2, %p6;" + written, 0},
      {"select of a sum and a literal", loaded + "selp.f32 %f6, %f5, 0f3F800000, %p6;" + written, 0},
      {"select of sums that are read again",
       loaded + "mul.f32 %f7, %f4, %f4; selp.f32 %f6, %f5, %f7, %p6; st.global.f32 [%rd5+4], %f7;" + written, 0},
      {"select of a sum and a root", loaded + "sqrt.approx.f32 %f7, %f4; selp.f32 %f6, %f5, %f7, %p6;" + written, 0},
      {"select of two wide words", wide + "xor.b64 %rd9, %rd6, %rd7; selp.b64 %rd9, %rd8, %rd9, %p6;" + wide_written,
       0},
      {"select of a wide sum and a loaded one", wide + "selp.b64 %rd9, %rd8, %rd7, %p6;" + wide_written, 0},
      {"condition as a number",
       "set.lt.u32.u32 %r20, %r3, %r1; neg.s32 %r21, %r20; set.lt.u32.u32 %r22, %r4, %r2; neg.s32 %r23, %r22;"
       "and.b32 %r24, %r21, %r23; setp.eq.s32 %p1, %r24, 0; @%p1 bra X; st.global.u32 [%rd5], %r3; bar.sync 0;\nX: "
       "ret;\n"},
      {"number of a condition",
       "set.lt.u32.u32 %r20, %r3, %r1; neg.s32 %r21, %r20; st.global.u32 [%rd5], %r21; ret;\n"},
      {"mask of a byte",
       "ld.global.u8 %h1, [%rd4]; cvt.u32.u16 %r20, %h1; and.b32 %r21, %r20, 255; st.global.u32 [%rd5], %r21; ret;\n",
       0},
      {"mask of a part of a byte",
       "ld.global.u8 %h1, [%rd4]; cvt.u32.u16 %r20, %h1; and.b32 %r21, %r20, 7; st.global.u32 [%rd5], %r21; ret;\n"},
      {"load alone under a predicate", guarded + "@%p4 ld.global.u32 %r20, [%rd6]; st.global.u32 [%rd5], %r20; ret;\n"},
      {"narrow load alone under a predicate",
       guarded + "mov.u16 %h1, 0; @%p4 ld.global.u16 %h1, [%rd6]; cvt.u32.u16 %r20, %h1; shl.b32 %r20, %r20, 16;"
                 "st.global.u32 [%rd5], %r20; ret;\n"},
      {"narrow load under a combined predicate",
       guarded + "mov.u16 %h1, 0; @%p4 ld.global.u16 %h1, [%rd6]; cvt.u32.u16 %r20, %h1; and.b32 %r21, %r3, 112;"
                 "setp.eq.s32 %p3, %r21, 0; and.pred %p2, %p3, %p4; @%p2 st.global.u32 [%rd5], %r20; ret;\n"},
      {"two loads under a predicate", guarded + "@%p4 ld.global.u32 %r20, [%rd6]; @%p4 ld.global.u32 %r21, [%rd6+4096];"
                                                "add.s32 %r20, %r20, %r21; st.global.u32 [%rd5], %r20; ret;\n"},
      {"pair of zeros", guarded +
                            "mov.u32 %r22, 0; mov.u32 %r23, 0; @%p4 ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd6];"
                            "add.s32 %r20, %r20, %r21; add.s32 %r22, %r22, %r23; add.s32 %r20, %r20, %r22;"
                            "st.global.u32 [%rd5], %r20; ret;\n"},
      {"last store under a predicate", "ld.global.u32 %r20, [%rd4]; @%p4 st.global.u32 [%rd5], %r20; ret;\n", 0},
      {"pointers of a loop",
       "L: .pragma \"nounroll\";\nld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5]; add.f32 %f1, %f1, %f2;"
       "add.f32 %f1, %f1, %f3; add.s64 %rd4, %rd4, 32768; add.s64 %rd5, %rd5, 32768;\n" +
           count +
           "%r1; @%p1 bra L;\nld.param.u64 %rd7, [q]; cvta.to.global.u64 %rd7, %rd7;"
           "st.global.f32 [%rd7], %f1; ret;\n",
       2},
  };
}

// What a store adds to a text: the part of it between << and >>.
std::vector<Case> stores() {
  const auto twice = [](const std::string& between, const std::string& first = "st.global.f32 [%rd5], %f2;") {
    return "ld.global.nc.f32 %f2, [%rd4]; st.global.f32 [%rd2+8], %f2;" + between.substr(0, between.find('|')) + "<<" +
           first + ">>" + between.substr(between.find('|') + 1) + "st.global.f32 [%rd5], %f3; ret;\n";
  };
  const auto loop = [](const std::string& limit) {
    return "L: ld.global.nc.f32 %f2, [%rd4]; fma.rn.f32 %f1, %f2, %f2, %f1; <<st.global.f32 [%rd5], %f1;>>"
           "ld.global.nc.f32 %f3, [%rd4+4]; fma.rn.f32 %f1, %f2, %f3, %f1; <<st.global.f32 [%rd5], %f1;>>"
           "add.s64 %rd4, %rd4, 64;\n" +
           count + limit + "; @%p1 bra L; st.global.f32 [%rd5+4], %f1; ret;\n";
  };
  return {
      {"read-only load", twice("|ld.global.nc.f32 %f3, [%rd4+4];"), 0},
      {"load", twice("|ld.global.f32 %f3, [%rd4+4];"), 0},
      {"load of shared memory", twice("|ld.shared.f32 %f3, [tile];"), 0},
      {"generic load", twice("|ld.f32 %f3, [%rd1];"), 0},
      {"exchange of lanes", twice("|shfl.sync.idx.b32 %f3, %f2, 0, 31, -1;"), 0},
      {"atomic operation on shared memory", twice("|atom.shared.add.u32 %r9, [tile], %r3; cvt.rn.f32.u32 %f3, %r9;"),
       0},
      {"barrier", twice("mov.f32 %f3, %f2;|bar.sync 0;"), 0},
      {"fence", twice("mov.f32 %f3, %f2;|membar.gl;"), 0},
      {"other store", twice("mov.f32 %f3, %f2;|st.global.f32 [%rd5+4], %f2;"), 0},
      {"under a predicate", twice("mov.f32 %f3, %f2;|", "@%p4 st.global.f32 [%rd5], %f2;"), 1},
      {"smaller store", twice("mov.f32 %f3, %f2;|", "st.global.u8 [%rd5], %r3;"), 0},
      {"store of a pair", twice("mov.f32 %f3, %f2;|", "st.global.v2.f32 [%rd5], {%f2, %f2};"), 1},
      {"volatile store", twice("mov.f32 %f3, %f2;|", "st.volatile.global.f32 [%rd5], %f2;"), 0},
      {"shared memory",
       "ld.global.f32 %f3, [%rd4]; <<st.shared.f32 [%r3], %f3;>> ld.global.f32 %f2, [%rd4+4]; mul.f32 %f2, %f2, %f3; "
       "st.shared.f32 [%r3], %f2; ret;\n",
       0},
      {"copies of a loop", loop("%r1"), 2},
      {"copies of a loop of known trips", loop("8"), 1},
  };
}

// Work on uniform values that merges with values of lanes.
std::vector<Case> merged_uniform(uint32_t capability) {
  const std::string wait = "ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd4+4]; add.f32 %f2, %f2, %f3;"
                           "sin.approx.f32 %f2, %f2; bar.sync 0; st.global.f32 [%rd4], %f2;";
  const auto skipped = [&](const std::string& work, const std::string& behind = "") {
    return "mov.u32 %r20, %r3; @%p4 bra X;" + work + wait + "X:" + behind + "st.global.u32 [%rd5], %r20; ret;\n";
  };
  const auto started = [](const std::string& work) {
    return work +
           "L: .pragma \"nounroll\";\nld.global.f32 %f2, [%rd4]; add.f32 %f1, %f1, %f2;"
           "add.s64 %rd4, %rd4, 4; add.s32 %r20, %r20, %r3; setp.ne.s32 %p1, %r20, 0; @%p1 bra L;\n" +
           store;
  };
  return {
      {"sum", skipped("<<add.s32 %r20, %r1, 5;>>"), 0},
      {"product of a sum", skipped("<<add.s32 %r20, %r1, 5; mul.lo.s32 %r20, %r20, %r2;>>"), 1},
      {"minimum", skipped("<<min.s32 %r20, %r1, 3;>>"), 0},
      // On Hopper such code is predicated.
      {"block index", skipped("<<shl.b32 %r20, %r4, 5; add.s32 %r20, %r20, %r1;>>"), capability == 90 ? 3 : 1},
      {"read by lanes, too",
       "xor.b32 %r21, %r3, 77; " +
           skipped("<<add.s32 %r20, %r1, 5; xor.b32 %r21, %r20, %r3;>> st.global.u32 [%rd4+16], %r21;"),
       1},
      {"stored, too", skipped("<<add.s32 %r20, %r1, 5; st.global.u32 [%rd4+16], %r20;>>"), 0},
      {"start of a loop", started("mov.u32 %r20, %r1; <<add.s32 %r20, %r1, 5;>>"), 1},
  };
}

// Factors of a product before a loop that adds it: which products become multiply-adds in the loop.
std::vector<Case> products_before_loops() {
  const auto loop = [](const std::string& product) {
    return "mov.u32 %r30, %ntid.x; mov.u32 %r31, %nctaid.x; add.s32 %r21, %r30, %r31; st.global.u32 [%rd5], %r21;"
           "ld.global.u32 %r33, [%rd4]; st.global.u32 [%rd5+4], %r33; add.s32 %r21, %r1, %r2;"
           "st.global.u32 [%rd5+8], %r21; mov.u32 %r21, %r33;" +
           product +
           "mov.u32 %r20, %tid.y;\nL: .pragma \"nounroll\";\nmul.wide.s32 %rd6, %r20, 4; add.s64 %rd6, %rd6, %rd1;"
           "ld.global.f32 %f2, [%rd6]; add.f32 %f1, %f1, %f2; add.s32 %r20, %r20, %r21; setp.lt.s32 %p1, %r20, %r1;"
           "@%p1 bra L;\n" +
           store;
  };
  return {
      {"dimensions", loop("<<mul.lo.s32 %r21, %r30, %r31;>>"), 0},
      {"dimension and thread index", loop("<<mul.lo.s32 %r21, %r31, %r3;>>"), 0},
      {"parameter and thread index", loop("<<mul.lo.s32 %r21, %r1, %r3;>>"), 0},
      {"loaded value and thread index", loop("<<mul.lo.s32 %r21, %r33, %r3;>>"), 0},
      {"loaded value and literal", loop("<<mul.lo.s32 %r21, %r33, 12;>>"), 0},
  };
}

// Halves of special registers, as nvcc read them up to release 2: what reading them as words takes less.
std::vector<Case> halves() {
  const auto with = [](const std::string& word, const std::string& half) {
    return "mov.u32 %r20, " + word + ";<<" + half + ">> add.s32 %r20, %r20, %r1; st.global.u32 [%rd1], %r20; ret;\n";
  };
  return {
      {"thread index", with("%tid.y", "cvt.u32.u16 %r20, %tid.y;"), 0},
      {"thread index, moved", with("%tid.y", "mov.u16 %h1, %tid.y; cvt.u32.u16 %r20, %h1;"), 0},
      {"block index", with("%ctaid.y", "cvt.u32.u16 %r20, %ctaid.y;"), 0},
      {"read twice", with("%tid.y", "cvt.u32.u16 %r20, %tid.y; cvt.u32.u16 %r21, %tid.y; xor.b32 %r20, %r20, %r2;"
                                    "add.s32 %r20, %r20, %r21;")},
      {"product with a dimension",
       "mov.u32 %r20, %ctaid.y; mov.u32 %r21, %ntid.y; mul.lo.u32 %r20, %r20, %r21; <<mov.u16 %h1, %ctaid.y;"
       "mov.u16 %h2, %ntid.y; mul.wide.u16 %r20, %h1, %h2;>> add.s32 %r20, %r20, %r3; st.global.u32 [%rd1], %r20;"
       "ret;\n",
       0},
  };
}

// Products of 24 bits: what they take beyond those of words.
std::vector<Case> short_products() {
  const std::string result = "st.global.u32 [%rd1], %r20; ret;\n";
  return {
      {"thread index and parameter", "mul.lo.s32 %r20, %r3, %r1; <<mul24.lo.s32 %r20, %r3, %r1;>>" + result, 0},
      {"without sign", "mul.lo.u32 %r20, %r3, %r1; <<mul24.lo.u32 %r20, %r3, %r1;>>" + result, 0},
      {"with a sum", "mul.lo.s32 %r20, %r4, %r1; <<mul24.lo.s32 %r20, %r4, %r1;>> add.s32 %r20, %r20, %r3;" + result,
       0},
      {"with two sums",
       "mul.lo.s32 %r20, %r3, %r1; <<mul24.lo.s32 %r20, %r3, %r1;>> add.s32 %r21, %r20, %r4; add.s32 %r20, %r20, %r2;"
       "st.global.u32 [%rd1+4], %r21;" +
           result},
      {"with a literal and a sum",
       "mul.lo.s32 %r20, %r3, 13; <<mul24.lo.s32 %r20, %r3, 13;>> add.s32 %r20, %r20, %r4;" + result, 0},
      {"with a power of two", "mul.lo.s32 %r20, %r3, 16; <<mul24.lo.s32 %r20, %r3, 16;>>" + result, 0},
      {"two with one factor",
       "mov.u32 %r22, %tid.y; mul.lo.s32 %r20, %r3, %r1; mul.lo.s32 %r21, %r22, %r1; <<mul24.lo.s32 %r20, %r3, %r1;"
       "mul24.lo.s32 %r21, %r22, %r1;>> st.global.u32 [%rd1+4], %r21;" +
           result,
       0},
      {"multiply-add", "mad.lo.s32 %r20, %r3, %r1, %r4; <<mad24.lo.s32 %r20, %r3, %r1, %r4;>>" + result, 0},
  };
}

// Shared addresses of 64 bits: what a product takes beyond a shift.
std::vector<Case> shared_products() {
  const auto place = [](const std::string& product, const std::string& accesses = "st.shared.u32 [%rd9], %r3; ret;\n") {
    return "ld.global.u32 %r20, [%rd4]; cvt.u64.u32 %rd6, %r20; shl.b64 %rd7, %rd6, 3;<<" + product +
           ">> mov.u64 %rd8, tile; add.s64 %rd9, %rd8, %rd7;" + accesses;
  };
  return {
      {"of a word", place("mul.wide.u32 %rd7, %r20, 4;"), 0},
      {"of a word with sign", place("mul.wide.s32 %rd7, %r20, 4;"), 0},
      {"of a pair", place("mul.lo.s64 %rd7, %rd6, 4;"), 0},
      {"read twice",
       place("mul.wide.u32 %rd7, %r20, 4;",
             "ld.shared.u32 %r21, [%rd9+4]; st.shared.u32 [%rd9], %r21; st.global.u32 [%rd4], %r21; ret;\n"),
       0},
      {"by a number that no access scales by", place("mul.wide.u32 %rd7, %r20, 12;"), 0},
  };
}

// Sums of parameters that accesses read.
std::vector<Case> uniform_pairs() {
  const std::string access = "st.global.u32 [%rd6], %r3; ret;\n";
  return {
      {"address", "mov.u64 %rd6, %rd1; <<add.s64 %rd6, %rd1, %rd2;>>" + access, 0},
      {"scaled", "mov.u64 %rd6, %rd1; <<shl.b64 %rd6, %rd2, 2; add.s64 %rd6, %rd1, %rd6;>>" + access, 0},
      {"read twice",
       "mov.u64 %rd6, %rd1; <<add.s64 %rd6, %rd1, %rd2;>> ld.global.u32 %r20, [%rd6+4];"
       "st.global.u32 [%rd6+8], %r20;" +
           access,
       0},
  };
}

// mad.wide of operands that all lanes share, and of one whose addend is another. On sm_75 the words of products that
// are no shifts are moved twice.
std::vector<Case> wide_addresses() {
  const std::string uniform = "mad.wide.u32 %rd6, %r4, 4, %rd1;", stored = "st.global.u32 [%rd2], %r20; ret;\n";
  const std::string load = "ld.global.u32 %r20, [%rd6];", index = "ld.global.u32 %r21, [%rd2+4];";
  const std::string both = "ld.global.u32 %r20, [%rd6]; ld.global.u32 %r22, [%rd7]; add.s32 %r20, %r20, %r22;";
  return {
      {"address", uniform + load + stored, 0},
      {"factor that is no power of two", "mad.wide.s32 %rd6, %r4, 12, %rd1;" + load + stored, 3},
      {"factor in a parameter", "mad.wide.s32 %rd6, %r4, %r1, %rd1;" + load + stored, 3},
      {"two addresses", uniform + "ld.global.u32 %r22, [%rd6+4];" + load + "add.s32 %r20, %r20, %r22;" + stored, 0},
      {"one product, two sums", uniform + "mad.wide.u32 %rd7, %r4, 4, %rd2;" + both + stored},
      {"the index is read by lanes, too", uniform + load + "add.s32 %r20, %r20, %r4;" + stored, 0},
      {"and by a multiply-add with a parameter",
       uniform + load + "mad.lo.s32 %r22, %r4, %r1, %r3; add.s32 %r20, %r20, %r22;" + stored, 0},
      {"a product of lanes is added", uniform + "mul.wide.u32 %rd7, %r3, 4; add.s64 %rd6, %rd6, %rd7;" + load + stored,
       0},
      {"and read by mad.wide beside an access", uniform + "mad.wide.u32 %rd7, %r3, 4, %rd6;" + both + stored, 0},
      {"signed, read by an unsigned one",
       "mad.wide.s32 %rd7, %r4, 4, %rd1; mad.wide.u32 %rd6, %r3, 4, %rd7;" + load + stored, 0},
      {"read by one of the same sign", uniform + "mad.wide.u32 %rd6, %r3, 4, %rd6;" + load + stored, 0},
      {"of lanes", index + "mad.wide.u32 %rd7, %r21, 8, %rd1; mad.wide.u32 %rd6, %r3, 4, %rd7;" + load + stored, 0},
      {"of lanes, by other factors",
       index + "mad.wide.u32 %rd7, %r21, 12, %rd1; mad.wide.u32 %rd6, %r3, 20, %rd7;" + load + stored, 0},
      {"of lanes, three",
       index + "mad.wide.u32 %rd7, %r21, 8, %rd1; mad.wide.u32 %rd8, %r3, 4, %rd7; mad.wide.u32 %rd6, %r4, 4, %rd8;" +
           load + stored,
       1},
      {"of lanes, of different signs",
       index + "mad.wide.s32 %rd7, %r21, 8, %rd1; mad.wide.u32 %rd6, %r3, 4, %rd7;" + load + stored, 0},
  };
}

// Approximate functions whose arguments are scaled.
std::vector<Case> scaled_arguments() {
  const std::string loads = "ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd4+512]; ld.global.f32 %f4, [%rd4+1024];";
  const std::string power = "ex2.approx.ftz.f32 %f5, %f2; add.f32 %f5, %f5, 0f3F800000;";
  const std::string square = "mul.f32 %f5, %f2, %f2; add.f32 %f5, %f5, 0f3F800000;";
  const std::string result = "st.global.f32 [%rd5], %f6; ret;\n", again = "st.global.f32 [%rd5+4], %f2;";
  std::vector<Case> cases;
  for (const char* name : {"ex2", "lg2", "sqrt", "rsqrt"}) {
    const std::string function = std::string(name) + ".approx.f32 %f6, ";
    cases.push_back({name, loads + function + "%f2;" + result, 0});
    cases.push_back({name, loads + function + "%f2;" + again + result, 0});
    cases.push_back({name, loads + power + function + "%f5;" + result, 0});
    cases.push_back({name, loads + square + function + "%f5;" + result, 0});
  }
  for (const char* name : {"div.full.f32", "div.approx.f32", "div.full.ftz.f32"}) {
    const std::string quotient = std::string(name) + " %f6, ";
    const std::string other = std::string(name) + " %f7, %f4, %f2; st.global.f32 [%rd5+8], %f7;";
    cases.push_back({name, loads + quotient + "%f3, %f2;" + result, 0});
    cases.push_back({name, loads + quotient + "%f3, %f2;" + again + result, 0});
    cases.push_back({name, loads + quotient + "%f2, %f3;" + again + result, 0});
    cases.push_back({name, loads + quotient + "%f3, 0f40400000;" + result, 0});
    cases.push_back({name, loads + quotient + "0f40A00000, %f2;" + result, 0});
    cases.push_back({name, loads + power + quotient + "%f3, %f5;" + result, 0});
    cases.push_back({name, loads + quotient + "%f3, %f2; add.f32 %f6, %f6, %f4;" + result, 0});
    cases.push_back({name, loads + quotient + "%f3, %f2;" + other + result, 0});
  }
  return cases;
}

// A shift to the right and a sum in which nothing negates it.
std::vector<Case> shifted_terms() {
  const std::string loads = "ld.global.u32 %r20, [%rd4]; ld.global.u32 %r21, [%rd5];";
  const std::string result = "st.global.u32 [%rd4], %r23; st.global.u32 [%rd5+4], %r21; ret;\n";
  std::vector<Case> cases;
  for (const char* shift : {"shr.s32", "shr.u32"})
    for (const char* sum : {"add.s32 %r23, %r22, %r21;", "sub.s32 %r23, %r22, %r21;", "sub.s32 %r23, %r21, %r22;",
                            "sub.s32 %r23, %r22, 5;", "sub.s32 %r23, %r22, %r1;", "sub.s32 %r23, %r1, %r22;"})
      cases.push_back({sum, loads + shift + " %r22, %r20, 3;" + sum + result, 0});
  return cases;
}

// Sums of 64 bits with scaled terms, and choices between such values.
std::vector<Case> wide_sums() {
  const std::string loads = "ld.global.u64 %rd10, [%rd4]; ld.global.u64 %rd11, [%rd4+512]; ld.global.u32 %r20, [%rd5];"
                            "st.global.u64 [%rd4+32], %rd10; st.global.u64 [%rd4+64], %rd11;";
  const std::string result = "st.global.u64 [%rd5+8], %rd14; ret;\n", also = "st.global.u64 [%rd5+16], %rd15;";
  std::vector<Case> cases;
  for (const char* term : {"shl.b64 %rd12, %rd10, 3;", "cvt.s64.s32 %rd13, %r20; shl.b64 %rd12, %rd13, 3;",
                           "cvt.u64.u32 %rd13, %r20; shl.b64 %rd12, %rd13, 3;", "mul.wide.s32 %rd12, %r20, 8;",
                           "mul.wide.u32 %rd12, %r20, 12;"}) {
    cases.push_back({term, loads + term + "add.s64 %rd14, %rd11, %rd12;" + result, 0});
    cases.push_back(
        {term, loads + term + "add.s64 %rd14, %rd11, %rd12; add.s64 %rd15, %rd10, %rd12;" + also + result, 0});
  }
  for (const char* factors : {"%r20, 8, ", "%r20, 12, ", "%r20, %r3, "}) {
    const std::string sum = std::string("mad.wide.s32 %rd14, ") + factors + "%rd11;";
    cases.push_back({factors, loads + sum + result, 0});
    cases.push_back({factors, loads + sum + "mad.wide.s32 %rd15, " + factors + "%rd10;" + also + result, 0});
  }
  for (const char* extended : {"cvt.u64.u32 %rd12, %r20;", "cvt.s64.s32 %rd12, %r20;"})
    for (const char* reader :
         {"add.s64 %rd14, %rd11, %rd12;", "sub.s64 %rd14, %rd11, %rd12;", "sub.s64 %rd14, %rd12, %rd11;",
          "and.b64 %rd14, %rd11, %rd12;", "shl.b64 %rd14, %rd12, 3;", "min.u64 %rd14, %rd11, %rd12;"})
      cases.push_back({reader, loads + extended + reader + result, 0});
  cases.push_back({"shift, extension",
                   loads + "shl.b32 %r21, %r20, 2; cvt.u64.u32 %rd12, %r21;" + "add.s64 %rd14, %rd11, %rd12;" + result,
                   0});
  cases.push_back({"choice", loads + "setp.lt.s32 %p1, %r20, 5; selp.b64 %rd14, %rd10, %rd11, %p1;" + result, 0});
  cases.push_back({"choice of zero", loads + "setp.lt.s32 %p1, %r20, 5; selp.b64 %rd14, %rd10, 0, %p1;" + result, 0});
  return cases;
}

// A local variable that nothing reads, and one with a generic address.
std::vector<Case> local_variables() {
  const std::string variable = ".local .align 8 .b8 depot[64]; mov.u64 %rd6, depot; cvta.local.u64 %rd7, %rd6;";
  const std::string result = "st.global.u32 [%rd4], %r3; ret;\n";
  const std::string also = "st.global.u32 [%rd5], %r20; ret;\n";
  return {
      {"unused", variable + result, 0},
      {"stored", variable + "st.u32 [%rd7+4], %r3;" + result, 0},
      {"stored and loaded", variable + "st.u32 [%rd7+4], %r3; st.global.u32 [%rd4], %r3; ld.u32 %r20, [%rd7+4];" + also,
       0},
  };
}

// A comparison of floating-point numbers whose result is 1.0 or 0.
std::vector<Case> numbers_of_comparisons() {
  const std::string loads = "ld.global.f32 %f2, [%rd4]; ld.global.f32 %f3, [%rd5]; st.global.f32 [%rd5+8], %f2;";
  const std::string one = "selp.f32 %f4, 0f3F800000, 0f00000000, %p1;", result = "st.global.f32 [%rd4], %f4; ret;\n";
  const std::string compared = "setp.gt.f32 %p1, %f2, %f3;";
  return {
      {"one or zero", loads + compared + one + result, 0},
      {"zero or one", loads + compared + "selp.f32 %f4, 0f00000000, 0f3F800000, %p1;" + result, 0},
      {"of a literal", loads + "setp.gt.f32 %p1, %f2, 0f40000000;" + one + result, 0},
      {"two or zero", loads + compared + "selp.f32 %f4, 0f40000000, 0f00000000, %p1;" + result, 0},
      {"of integers", loads + "setp.lt.s32 %p1, %r3, %r1;" + one + result, 0},
      {"with another reader", loads + compared + one + "@%p1 st.global.f32 [%rd5+16], %f3;" + result, 0},
  };
}

struct Counts {
  int by_ptxas = 0, estimated = 0;
};

Counts counts_of(const std::string& body, uint32_t capability) {
  const std::string target = "sm_" + std::to_string(capability);
  const std::string text = ".version 8.7\n.target " + target + "\n.address_size 64\n" + kernel("k", body);
  Result<FiguresByFunction> real = machine_figures(text, target);
  REQUIRE_MESSAGE(real.ok(), body);
  ReadText read(text);
  REQUIRE_MESSAGE(read.ok(), read.messages());
  Function& function = *read.module->functions.front();
  REQUIRE(construct_ssa(function).ok());
  return {static_cast<int>(real->at("k").instructions),
          static_cast<int>(lower(function, capability).static_instructions())};
}

void compare(const std::vector<Case>& cases, uint32_t capability) {
  for (const Case& one : cases) {
    const auto [by_ptxas, estimated] = counts_of(one.body, capability);
    INFO("sm_" << capability << ", " << std::string(one.name) << ": " << by_ptxas << " by ptxas, " << estimated
               << " estimated");
    CHECK(std::abs(estimated - by_ptxas) <= one.tolerance);
  }
}

// Compares what the part between << and >> adds.
void compare_additions(const std::vector<Case>& cases, uint32_t capability) {
  for (const Case& one : cases) {
    const Counts with = counts_of(std::regex_replace(one.body, std::regex("<<|>>"), ""), capability),
                 without = counts_of(std::regex_replace(one.body, std::regex("<<[^>]*>>"), ""), capability);
    const int by_ptxas = with.by_ptxas - without.by_ptxas, estimated = with.estimated - without.estimated;
    INFO("sm_" << capability << ", " << std::string(one.name) << ": " << by_ptxas << " more by ptxas, " << estimated
               << " estimated");
    CHECK(std::abs(estimated - by_ptxas) <= one.tolerance);
  }
}

} // namespace

TEST_CASE("loops of public kernels") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {80u, 90u})
    compare(loops(), capability);
}

TEST_CASE("sequences of public kernels") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u})
    compare(sequences(), capability);
}

TEST_CASE("stores to one address") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u})
    compare_additions(stores(), capability);
}

TEST_CASE("uniform work that merges with values of lanes") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {80u, 86u, 90u, 100u})
    compare_additions(merged_uniform(capability), capability);
}

TEST_CASE("products before loops that add them") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 100u, 120u})
    compare_additions(products_before_loops(), capability);
}

TEST_CASE("halves of special registers") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare_additions(halves(), capability);
}

TEST_CASE("products of 24 bits") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare_additions(short_products(), capability);
}

TEST_CASE("products in shared addresses") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare_additions(shared_products(), capability);
}

TEST_CASE("sums of parameters that accesses read") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u})
    compare_additions(uniform_pairs(), capability);
}

TEST_CASE("addresses by wide multiply-adds") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 86u, 90u, 100u})
    compare(wide_addresses(), capability);
}

TEST_CASE("approximate functions that scale their arguments") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare(scaled_arguments(), capability);
}

TEST_CASE("sums of values that are shifted to the right") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare(shifted_terms(), capability);
}

TEST_CASE("sums of 64 bits") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare(wide_sums(), capability);
}

TEST_CASE("local variables with generic addresses") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {80u, 90u, 100u, 120u})
    compare(local_variables(), capability);
}

TEST_CASE("comparisons as numbers") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (uint32_t capability : {75u, 80u, 90u, 120u})
    compare(numbers_of_comparisons(), capability);
}

// No-operations between instructions of double precision: what sm_103 takes beyond sm_100.
TEST_CASE("spacing of double precision") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string begin = ".reg .f64 %d<9>; ld.global.f64 %d1, [%rd4]; ld.global.f64 %d2, [%rd4+8];\n";
  const std::string end = "st.global.f64 [%rd5], %d3; ret;\n";
  const std::string fma = "fma.rn.f64 %d3, %d3, %d1, %d2;\n", div = "div.rn.f64 %d3, %d3, %d1;\n";
  const std::string start = "mul.f64 %d3, %d1, %d2;\n";
  std::string work = "mov.b64 {%r20, %r21}, %d3;\n";
  for (int i = 0; i < 16; ++i)
    work += "mad.lo.s32 %r20, %r20, %r3, %r20;\n";
  const std::vector<Case> cases = {
      {"one", start, 0},
      {"three", start + fma + fma},
      {"five", start + fma + fma + fma + fma},
      {"conversions", start + "cvt.rzi.s32.f64 %r20, %d3; cvt.rn.f64.s32 %d3, %r20;\n"},
      {"division", div},
      {"two divisions", start + div + div},
      {"minima", "mov.f64 %d3, %d2;\nmin.f64 %d3, %d3, %d1;\nmin.f64 %d3, %d3, %d2;\nmax.f64 %d3, %d3, %d1;\n"},
      {"reciprocal", start + "rcp.rn.f64 %d3, %d3;\n"},
      {"square root", start + "sqrt.rn.f64 %d3, %d3;\n"},
      {"reciprocal square root", start + "rsqrt.approx.f64 %d3, %d3;\n"},
      {"integer work between", start + work + fma + "st.global.u32 [%rd5+8], %r20;\n", 2},
  };
  for (const Case& one : cases) {
    int by_ptxas = 0, estimated = 0;
    for (const auto& [capability, sign] : {std::pair(100u, -1), std::pair(103u, 1)}) {
      const std::string target = "sm_" + std::to_string(capability);
      std::string body = begin + one.body + end;
      if (one.body == div) body = begin + "mov.f64 %d3, %d2;\n" + div + end;
      const std::string text = ".version 8.8\n.target " + target + "\n.address_size 64\n" + kernel("k", body);
      Result<FiguresByFunction> real = machine_figures(text, target);
      if (!real) {
        MESSAGE("skipped: this ptxas does not make code for " << target);
        return;
      }
      ReadText read(text);
      REQUIRE_MESSAGE(read.ok(), read.messages());
      Function& function = *read.module->functions.front();
      REQUIRE(construct_ssa(function).ok());
      estimated += sign * static_cast<int>(lower(function, capability).static_instructions());
      by_ptxas += sign * static_cast<int>(real->at("k").instructions);
    }
    INFO(std::string(one.name) << ": " << by_ptxas << " more by ptxas, " << estimated << " estimated");
    CHECK(std::abs(estimated - by_ptxas) <= one.tolerance);
  }
}

} // namespace ptxrewrite::tests::public_code_test
