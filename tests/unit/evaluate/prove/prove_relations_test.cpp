// `prove` on rewritings that no single instruction states: words for bytes, registers of another width in loops, loads
// that are left out, and floating-point forms that are equal by a rule. Each with neighbours that are not equal.
#include "tests/unit/evaluate/prove/prove_text.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::prove_relations_test {

using namespace ptxrewrite;
using namespace ptxrewrite::prove;

namespace {

std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 "
         "n)\n"
         "{\n.reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .b16 %h<8>; .reg .f32 %f<12>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];\n" +
         body + "ret;\n}\n";
}

// Instructions without an effect, so that the others have the same numbers in both texts.
std::string idle(unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += "mov.b32 %r11, 0; ";
  return text;
}

bool is_proved(const std::string& original, const std::string& rewritten, bool are_apart = false) {
  std::vector<transforms::Obligation> ledger;
  if (are_apart)
    ledger.push_back({"k",
                      "the bytes read through P0 are apart from those written through P1",
                      "memory: a load of what is not written",
                      transforms::Discharge::launch_checked,
                      "P0 >= P1 + 64 || P1 >= P0 + 64",
                      {},
                      ""});
  return prove_texts(kernel(original), kernel(rewritten), ledger).holds();
}

// With pointers that are multiples of 4, as words need.
bool is_proved_of_words(const std::string& original, const std::string& rewritten) {
  const std::string align = "and.b64 %rd1, %rd1, -4; and.b64 %rd2, %rd2, -4;\n";
  return is_proved(align + original, align + rewritten);
}

} // namespace

TEST_CASE("a word in place of four loaded bytes") {
  const auto bytes = [](const std::string& type, const std::string& third = "2", const std::string& between = "") {
    const std::string load = "ld.global." + type;
    return load + " %r1, [%rd1]; " + between + load + " %r2, [%rd1+1]; " + load + " %r3, [%rd1+" + third + "]; " +
           load + " %r4, [%rd1+3];\n";
  };
  const std::string join = "shl.b32 %r2, %r2, 8; shl.b32 %r3, %r3, 16; shl.b32 %r4, %r4, 24; or.b32 %r5, %r1, %r2; "
                           "or.b32 %r5, %r5, %r3; or.b32 %r5, %r5, %r4;\n";
  const std::string store = "st.global.u32 [%rd2], %r5;\n";
  const auto word = [&](const std::string& offset, const std::string& after = idle(3)) {
    return "ld.global.u32 %r5, [%rd1" + offset + "]; " + after + idle(6) + store;
  };
  CHECK(is_proved_of_words(bytes("u8") + join + store, word("")));
  CHECK_FALSE(is_proved(bytes("u8") + join + store, word(""))); // the pointer may be no multiple of 4
  CHECK_FALSE(is_proved_of_words(bytes("u8") + join + store, word("+4")));
  CHECK_FALSE(is_proved_of_words(bytes("u8") + join + store, word("+1")));
  CHECK_FALSE(is_proved_of_words(bytes("u8", "4") + join + store, word(""))); // a byte that was not read
  CHECK_FALSE(is_proved_of_words(bytes("s8") + join + store, word("")));      // signs in the bytes above
  const std::string other = "shl.b32 %r3, %r3, 8; shl.b32 %r2, %r2, 16; shl.b32 %r4, %r4, 24; or.b32 %r5, %r1, %r2; "
                            "or.b32 %r5, %r5, %r3; or.b32 %r5, %r5, %r4;\n";
  CHECK_FALSE(is_proved_of_words(bytes("u8") + other + store, word("")));
  CHECK(is_proved_of_words(bytes("u8") + other + store,
                           "ld.global.u32 %r4, [%rd1]; prmt.b32 %r5, %r4, 0, 0x3120;" + idle(8) + store));
  // By another register, with the same address and with another one.
  const auto moved = [&](const std::string& distance) {
    return "add.s64 %rd7, %rd1, " + distance + "; ld.global.u32 %r5, [%rd7+-8]; " + idle(9) + store;
  };
  const std::string before = idle(1);
  CHECK(is_proved_of_words(before + bytes("u8") + join + store, moved("8")));
  CHECK_FALSE(is_proved_of_words(before + bytes("u8") + join + store, moved("9")));
  // The bytes behind the store may be what it writes.
  const std::string write = "st.global.u8 [%rd2+8], %r9; ";
  CHECK_FALSE(is_proved_of_words(bytes("u8", "2", write) + join + store, word("", write + idle(3))));
}

TEST_CASE("a word in place of four stored bytes") {
  const auto bytes = [](const std::string& shifts, const std::string& between = "") {
    return "ld.global.u32 %r1, [%rd1];\n" + shifts + "st.global.u8 [%rd2], %r1; st.global.u8 [%rd2+1], %r2; " +
           between + "st.global.u8 [%rd2+2], %r3; st.global.u8 [%rd2+3], %r4;\n";
  };
  const std::string shifts = "shr.u32 %r2, %r1, 8; shr.u32 %r3, %r1, 16; shr.s32 %r4, %r1, 24;\n";
  const std::string load = "ld.global.u32 %r1, [%rd1];\n";
  CHECK(is_proved_of_words(bytes(shifts), load + idle(6) + "st.global.u32 [%rd2], %r1;\n"));
  CHECK_FALSE(is_proved_of_words(bytes(shifts), load + idle(6) + "st.global.u32 [%rd2+4], %r1;\n"));
  CHECK_FALSE(is_proved_of_words(bytes("shr.u32 %r3, %r1, 8; shr.u32 %r2, %r1, 16; shr.s32 %r4, %r1, 24;\n"),
                                 load + idle(6) + "st.global.u32 [%rd2], %r1;\n"));
  CHECK(is_proved_of_words(bytes("shr.u32 %r3, %r1, 8; shr.u32 %r2, %r1, 16; shr.s32 %r4, %r1, 24;\n"),
                           load + idle(5) + "prmt.b32 %r1, %r1, 0, 0x3120; st.global.u32 [%rd2], %r1;\n"));
  // A load between the stores may read what they write.
  const std::string read = "ld.global.u32 %r7, [%rd1+8]; ";
  CHECK_FALSE(
      is_proved_of_words(bytes(shifts, read), load + idle(5) + read + idle(1) + "st.global.u32 [%rd2], %r1;\n"));
}

TEST_CASE("a register of a loop in 32 bits that holds what 64 did") {
  const auto wide = [](const std::string& first, const std::string& limit = "gt") {
    return "mov.b64 %rd5, " + first +
           "; LOOP: shl.b64 %rd6, %rd5, 3; add.s64 %rd7, %rd1, %rd6;\n"
           "ld.global.u32 %r2, [%rd7]; cvt.s64.s32 %rd5, %r2; setp." +
           limit +
           ".s32 %p1, %r2, 0; @%p1 bra LOOP;\n"
           "st.global.u32 [%rd2], %r2;\n";
  };
  const auto narrow = [](const std::string& first, const std::string& type = "s32",
                         const std::string& next = "mov.b32 %r5, %r2", const std::string& limit = "gt") {
    return "mov.b32 %r5, " + first + "; LOOP: mul.wide." + type +
           " %rd6, %r5, 8; add.s64 %rd7, %rd1, %rd6;\n"
           "ld.global.u32 %r2, [%rd7]; " +
           next + "; setp." + limit +
           ".s32 %p1, %r2, 0; @%p1 bra LOOP;\n"
           "st.global.u32 [%rd2], %r2;\n";
  };
  CHECK(is_proved(wide("5"), narrow("5")));
  CHECK(is_proved(wide("-5"), narrow("-5")));
  CHECK_FALSE(is_proved(wide("5"), narrow("6")));
  CHECK_FALSE(is_proved(wide("5"), narrow("5", "u32")));
  CHECK_FALSE(is_proved(wide("0x100000005"), narrow("5")));
  CHECK_FALSE(is_proved(wide("5"), narrow("5", "s32", "add.s32 %r5, %r2, 1")));
  CHECK_FALSE(is_proved(wide("5"), narrow("5", "s32", "mov.b32 %r5, %r2", "ge"))); // one trip more
  // Zero-extended registers.
  const std::string positive =
      "mov.b64 %rd5, 0; LOOP: shl.b64 %rd6, %rd5, 3; add.s64 %rd7, %rd1, %rd6;\n"
      "ld.global.u32 %r2, [%rd7]; cvt.u64.u32 %rd5, %r2; setp.gt.s32 %p1, %r2, 0; @%p1 bra LOOP;\n"
      "st.global.u32 [%rd2], %r2;\n";
  CHECK(is_proved(positive, narrow("0", "u32")));
  CHECK_FALSE(is_proved(positive, narrow("0", "s32")));
}

TEST_CASE("a load is left out if an earlier one read the same, and nothing writes it") {
  const auto original = [](const std::string& second) {
    return "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1; ld.global.u32 %r2, [%rd1" + second +
           "]; st.global.u32 [%rd2+4], %r2;\n";
  };
  const auto once = [](const std::string& kind) {
    return "ld.global" + kind +
           ".u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1; mov.b32 %r2, %r1; "
           "st.global.u32 [%rd2+4], %r2;\n";
  };
  CHECK(is_proved(original(""), once(".nc"), true));
  CHECK_FALSE(is_proved(original(""), once(".nc"), false));
  CHECK_FALSE(is_proved(original(""), once(""), true)); // what is read may be written
  CHECK_FALSE(is_proved(original("+4"), once(".nc"), true));
  // The condition is about another pointer, or the kernel writes by this one.
  const auto by_other = [](const std::string& kind, const std::string& second) {
    return "ld.global" + kind + ".u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1; " + second +
           " st.global.u32 [%rd1+4], %r2;\n";
  };
  CHECK_FALSE(is_proved(by_other("", "ld.global.u32 %r2, [%rd2];"), by_other(".nc", "mov.b32 %r2, %r1;"), true));
  CHECK_FALSE(is_proved(by_other("", "mov.b32 %r2, %r1;"), by_other(".nc", "mov.b32 %r2, %r1;"), true));
  const auto in_place = [](const std::string& kind, const std::string& second, const std::string& write) {
    return "ld.global" + kind + ".u32 %r1, [%rd1]; add.s32 %r3, %r1, 1; " + write + second +
           " st.global.u32 [%rd2], %r2;\n";
  };
  const std::string again = "ld.global.u32 %r2, [%rd1];", copied = "mov.b32 %r2, %r1;";
  const std::string store = "st.global.u32 [%rd1], %r3; ", add = "red.global.add.u32 [%rd1], %r3; ";
  const std::string elsewhere = "st.global.u32 [%rd2+8], %r3; ", barrier = "bar.sync 0; ";
  CHECK(is_proved(in_place("", again, elsewhere), in_place(".nc", copied, elsewhere), true));
  CHECK(is_proved(in_place("", again, barrier), in_place(".nc", copied, barrier), true));
  for (const std::string& write : {store, add}) {
    CHECK_FALSE(is_proved(in_place("", again, write), in_place(".nc", copied, write), true));
    CHECK_FALSE(is_proved(in_place("", copied, write), in_place(".nc", copied, write), true));
  }
  for (const std::string& write : {elsewhere, barrier, store})
    CHECK_FALSE(is_proved(in_place("", again, write), in_place("", copied, write), true));
  // Strong loads: another thread may have written in between.
  for (const char* kind : {".volatile", ".relaxed.gpu", ".acquire.gpu"}) {
    const std::string strong = "ld" + std::string(kind) + ".global.u32 ";
    const std::string first = strong + "%r1, [%rd1]; ", second = strong + "%r2, [%rd1]; ";
    const std::string weak = "ld.global.u32 %r1, [%rd1]; ", read_only = "ld.global.nc.u32 %r1, [%rd1]; ";
    const std::string end = "add.s32 %r3, %r1, %r2; st.global.u32 [%rd2], %r3;\n", copy = "mov.b32 %r2, %r1; ";
    CHECK(is_proved(first + second + end, first + second + end, true));
    CHECK_FALSE(is_proved(first + second + end, first + copy + end, true));
    CHECK_FALSE(is_proved(first + second + end, read_only + copy + end, true));
    CHECK_FALSE(is_proved(weak + second + end, read_only + copy + end, true));
  }
  // On one side of a branch only; behind a loop, where the numbers of trips have another meaning.
  const std::string test = "setp.gt.s32 %p1, %r9, 0; ";
  CHECK_FALSE(is_proved(test + "mov.b32 %r1, 0; @%p1 bra NEXT; ld.global.u32 %r1, [%rd1];\nNEXT: "
                               "ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd2], %r2;\n",
                        test + "mov.b32 %r1, 0; @%p1 bra NEXT; ld.global.nc.u32 %r1, [%rd1];\nNEXT: mov.b32 %r2, %r1; "
                               "st.global.u32 [%rd2], %r2;\n",
                        true));
  // Used on that side only, the result is right, but a load that does not dominate counts for no other one.
  const auto sided = [&](const std::string& kind, const std::string& second) {
    return test + "mov.b32 %r1, 0; @%p1 bra NEXT; ld.global" + kind + ".u32 %r1, [%rd1];\nNEXT: " + second +
           " selp.b32 %r3, 0, %r2, %p1; st.global.u32 [%rd2], %r3;\n";
  };
  CHECK(is_proved(sided("", again), sided(".nc", again), true));
  CHECK_FALSE(is_proved(sided("", again), sided(".nc", copied), true));
  const std::string loop = "mov.b32 %r3, 0; mov.b64 %rd5, %rd1; LOOP: ld.global.u32 %r1, [%rd5];\n";
  const std::string tail = "add.s64 %rd5, %rd5, 4; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r9; @%p1 bra LOOP;\n";
  CHECK_FALSE(is_proved(loop + tail + "ld.global.u32 %r2, [%rd5+-4]; st.global.u32 [%rd2], %r2;\n",
                        "mov.b32 %r3, 0; mov.b64 %rd5, %rd1; LOOP: ld.global.nc.u32 %r1, [%rd5];\n" + tail +
                            "mov.b32 %r2, %r1; st.global.u32 [%rd2], %r2;\n",
                        true));
}

TEST_CASE("division of floats by a literal is a product and a correction") {
  const std::string load = "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f7, [%rd1+4];\n",
                    store = "st.global.f32 [%rd2], %f6;\n";
  const auto divided = [&](const std::string& by, const std::string& rounding = "rn") {
    return load + "div." + rounding + ".f32 %f6, %f1, " + by + "; " + idle(4) + store;
  };
  const auto product = [&](const std::string& by, const std::string& reciprocal, const std::string& minus,
                           const std::string& limit = "0fFF7FFFFF", const std::string& x = "%f1") {
    return load + "mul.rn.f32 %f2, %f1, " + reciprocal + "; neg.f32 %f3, " + x + "; fma.rn.f32 %f4, %f2, " + by +
           ", %f3; max.f32 %f5, %f4, " + limit + "; fma.rn.f32 %f6, %f5, " + minus + ", %f2;\n" + store;
  };
  const std::string three = "0f40400000", third = "0f3EAAAAAB", minus_third = "0fBEAAAAAB", six = "0f40C00000";
  CHECK(is_proved(divided(three), product(three, third, minus_third)));
  CHECK_FALSE(is_proved(divided("0f40E00000"), product(three, third, minus_third)));
  CHECK_FALSE(is_proved(divided(three), product(three, "0f3EAAAAAA", minus_third)));
  CHECK_FALSE(is_proved(divided(three), product(three, third, third)));
  CHECK_FALSE(is_proved(divided(three), product(three, third, minus_third, "0fFF800000")));
  CHECK_FALSE(is_proved(divided(three), product(three, third, minus_third, "0fFF7FFFFF", "%f7")));
  CHECK_FALSE(is_proved(divided(three, "rz"), product(three, third, minus_third)));
  CHECK_FALSE(is_proved(divided(six), product(six, "0f3E2AAAAB", "0fBE2AAAAB"))); // wrong if the quotient is subnormal
}

TEST_CASE("an operation on halves widened to f32 and rounded once is one on halves; clamps go through integers") {
  const std::string load = "ld.global.b16 %h1, [%rd1]; ld.global.b16 %h2, [%rd1+2];\n",
                    store = "st.global.b16 [%rd2], %h3;\n";
  const auto in_floats = [&](const std::string& operation, const std::string& rounding = "rn") {
    return load + "cvt.f32.f16 %f1, %h1; cvt.f32.f16 %f2, %h2; " + operation + " %f3, %f1, %f2; cvt." + rounding +
           ".f16.f32 %h3, %f3;\n" + store;
  };
  const auto in_halves = [&](const std::string& operation, const std::string& operands = "%h1, %h2") {
    return load + operation + " %h3, " + operands + "; " + idle(3) + store;
  };
  CHECK(is_proved(in_floats("add.f32"), in_halves("add.rn.f16")));
  CHECK(is_proved(in_floats("sub.ftz.f32"), in_halves("sub.rn.f16")));
  CHECK(is_proved(in_floats("mul.rn.f32"), in_halves("mul.rn.f16")));
  CHECK(is_proved(in_floats("max.f32"), in_halves("max.f16")));
  CHECK_FALSE(is_proved(in_floats("sub.f32"), in_halves("sub.rn.f16", "%h2, %h1")));
  CHECK_FALSE(is_proved(in_floats("add.f32"), in_halves("sub.rn.f16")));
  CHECK_FALSE(is_proved(in_floats("max.f32"), in_halves("min.f16")));
  CHECK_FALSE(is_proved(in_floats("add.f32", "rz"), in_halves("add.rn.f16")));
  CHECK_FALSE(is_proved(in_floats("add.rz.f32"), in_halves("add.rn.f16")));
  CHECK_FALSE(is_proved(in_floats("max.NaN.f32"), in_halves("max.f16")));
  const auto clamped = [](const std::string& limit, const std::string& rounding = "rzi") {
    return "ld.global.f32 %f1, [%rd1]; max.f32 %f2, %f1, 0f00000000; min.f32 %f3, %f2, " + limit + "; cvt." + rounding +
           ".u32.f32 %r1, %f3; st.global.u32 [%rd2], %r1;\n";
  };
  const std::string whole =
      "ld.global.f32 %f1, [%rd1]; cvt.rzi.s32.f32 %r2, %f1; min.s32 %r3, %r2, 255; max.s32 %r1, %r3, 0; "
      "st.global.u32 [%rd2], %r1;\n";
  CHECK(is_proved(clamped("0f437F0000"), whole));
  CHECK_FALSE(is_proved(clamped("0f43800000"), whole));
  CHECK_FALSE(is_proved(clamped("0f437F0000", "rni"), whole));
}

} // namespace ptxrewrite::tests::prove_relations_test
