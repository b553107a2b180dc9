// Pairs of kernels that write different memory in some launch, each made for one step of `prove` that could overlook
// it. The right neighbour of a pair is proved, so that the pair is not refused for another reason.
#include "tests/unit/evaluate/prove/prove_text.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::prove_wrong_pairs_test {

using namespace ptxrewrite;
using namespace ptxrewrite::prove;

namespace {

std::string kernel(const std::string& body) {
  return ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 "
         "n)\n{\n.reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .b16 %h<8>; .reg .f32 %f<12>; .reg .pred %p<4>;\n"
         ".reg .b128 %q<4>;\nld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];\n" +
         body + "ret;\n}\n";
}

bool is_proved(const std::string& original, const std::string& rewritten) {
  return prove_texts(kernel(original), kernel(rewritten)).holds();
}

} // namespace

TEST_CASE("16-bit shifts take their amount from 32 bits") {
  const auto left = [](const std::string& amount) {
    return "ld.global.u32 %r1, [%rd1]; ld.global.u16 %h1, [%rd1+4]; " + amount +
           "; shl.b16 %h2, %h1, %r2; st.global.u16 [%rd2], %h2;\n";
  };
  CHECK(is_proved(left("mov.b32 %r2, %r1"), left("and.b32 %r2, %r1, -1")));
  CHECK_FALSE(is_proved(left("mov.b32 %r2, %r1"), left("and.b32 %r2, %r1, 0xffff"))); // by 0 instead of 65536
  const auto right = [](const std::string& shift) {
    return "ld.global.u16 %h1, [%rd1]; " + shift + "; st.global.u16 [%rd2], %h2;\n";
  };
  CHECK(is_proved(right("shr.s16 %h2, %h1, 65536"), right("shr.s16 %h2, %h1, 15")));
  CHECK_FALSE(is_proved(right("shr.s16 %h2, %h1, 65536"), right("mov.b16 %h2, %h1")));
}

TEST_CASE("what a loop adds in a trip is not the same in all trips if it is loaded in the loop") {
  // `old` stores the sum of the loaded numbers in each trip, `made` a multiple of the last one.
  const std::string start = "mov.b64 %rd8, 0; mov.b64 %rd4, 0; mov.b64 %rd5, %rd1;\nLOOP: ";
  const auto pair = [&](const std::string& load) {
    const std::string tail = "add.s64 %rd5, %rd5, 16; add.s64 %rd4, %rd4, 1; cvt.u32.u64 %r4, %rd4; "
                             "setp.lt.s32 %p2, %r4, %r9; @%p2 bra LOOP;\n";
    const std::string old = "mov.b64 %rd9, %rd8; st.global.u64 [%rd2], %rd9; add.s64 %rd8, %rd8, %rd6; ";
    const std::string made = "mul.lo.s64 %rd9, %rd4, %rd6; st.global.u64 [%rd2], %rd9; mov.b64 %rd8, 0; ";
    return is_proved(start + load + old + tail, start + load + made + tail);
  };
  CHECK(pair("mov.b64 %rd6, %rd1; ")); // the same in all trips
  CHECK_FALSE(pair("ld.global.u64 %rd6, [%rd5]; "));
  CHECK_FALSE(pair("mov.b64 %rd6, 0; setp.lt.s32 %p1, %r9, 100; @%p1 ld.global.u64 %rd6, [%rd5]; "));
  CHECK_FALSE(pair("mov.b64 %rd6, 0; setp.lt.s32 %p1, %r9, 100; @%p1 atom.global.add.u64 %rd6, [%rd1], 1; "));
  CHECK_FALSE(pair("ld.global.b128 %q1, [%rd5]; mov.b128 {%rd6, %rd7}, %q1; "));
}

TEST_CASE("what an outer loop adds in a trip is not the same in all trips if an inner loop counts it") {
  const auto pair = [](const std::string& limit) {
    const std::string start = "mov.b32 %r3, 0; mov.b32 %r4, 0; ld.global.u32 %r2, [%rd1];\nOUTER: mov.b32 %r5, 0;\n"
                              "INNER: add.s32 %r5, %r5, 1; ld.global.u32 %r7, [%rd1+4]; setp.lt.s32 %p1, %r5, " +
                              limit + "; @%p1 bra INNER;\n";
    const std::string old = "mov.b32 %r6, %r3; st.global.u32 [%rd2], %r6; add.s32 %r3, %r3, %r5; ";
    const std::string made = "mul.lo.s32 %r6, %r4, %r5; st.global.u32 [%rd2], %r6; mov.b32 %r3, 0; ";
    const std::string tail = "add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r9; @%p2 bra OUTER;\n";
    return is_proved(start + old + tail, start + made + tail);
  };
  CHECK_FALSE(pair("%r7")); // loaded in each trip
}

TEST_CASE("a clamped float in a register of 64 bits") {
  const auto clamped = [](const std::string& from, const std::string& limit) {
    return "ld.global.f32 %f1, [%rd1]; max.f32 %f2, %f1, 0f00000000; min.f32 %f3, %f2, " + limit +
           "; cvt.rzi.u32.f32 %rd5, " + from + "; st.global.u64 [%rd2], %rd5;\n";
  };
  CHECK(is_proved(clamped("%f3", "0f437F0000"), clamped("%f3", "0f437F0000")));
  CHECK_FALSE(is_proved(clamped("%f3", "0f437F0000"), clamped("%f2", "0f437F0000")));
  CHECK_FALSE(is_proved(clamped("%f3", "0f437F0000"), clamped("%f3", "0f43800000")));
}

// ISA, ld and st: an address must be a multiple of the size of the access.
TEST_CASE("an access in place of smaller ones needs an address that is a multiple of its size") {
  const std::string nothing = "mov.b32 %r8, 0; "; // instructions correspond by number
  const auto pair = [&](const std::string& address) {
    const std::string sum = "add.f32 %f3, %f1, %f2; st.global.f32 [%rd2], %f3;\n";
    return is_proved(address + "ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd3+4]; " + sum,
                     address + "ld.global.v2.f32 {%f1, %f2}, [%rd3]; " + nothing + sum);
  };
  CHECK(pair("and.b64 %rd3, %rd1, -8; "));
  CHECK_FALSE(pair("and.b64 %rd3, %rd1, -4; "));
  CHECK_FALSE(pair("mov.b64 %rd3, %rd1; "));
  const auto word = [&](const std::string& address) {
    std::string fill;
    for (int i = 0; i < 6; ++i)
      fill += nothing;
    return is_proved(address + "ld.global.u8 %r1, [%rd3]; ld.global.u8 %r2, [%rd3+1]; ld.global.u16 %r3, [%rd3+2]; "
                               "shl.b32 %r4, %r2, 8; or.b32 %r5, %r1, %r4; shl.b32 %r6, %r3, 16; or.b32 %r7, %r5, %r6; "
                               "st.global.u32 [%rd2], %r7;\n",
                     address + "ld.global.u32 %r7, [%rd3]; " + fill + "st.global.u32 [%rd2], %r7;\n");
  };
  CHECK(word("shl.b64 %rd3, %rd1, 2; "));
  CHECK_FALSE(word("shl.b64 %rd3, %rd1, 1; "));
}

TEST_CASE("an access in place of one of the same size is aligned as that one") {
  const std::string bytes = "ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%rd1]; ";
  CHECK(is_proved(bytes + "cvt.u32.u16 %r1, %h1; and.b32 %r2, %r1, 255; st.global.u32 [%rd2], %r2;\n",
                  "ld.global.u32 %r1, [%rd1]; mov.b32 %r3, 0; and.b32 %r2, %r1, 255; st.global.u32 [%rd2], %r2;\n"));
}

} // namespace ptxrewrite::tests::prove_wrong_pairs_test
