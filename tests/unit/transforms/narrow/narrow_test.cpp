// Pass `narrow`: each kind of place in its pattern, the launch condition, and equal memory after the variant.
#include "tests/unit/transforms/variant_fixture.h"

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

namespace {

// A kernel k(p, n, w) of 64-bit numbers; %rd5 = ctaid.x * ntid.x + tid.x. `body` computes %rd20 and %rd21.
std::string kernel_text(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u64 n, .param .u64 w)\n"
         "{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
         "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [n];\nld.param.u64 %rd3, [w];\n"
         "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmul.wide.u32 %rd4, %r3, %r4;\n"
         "cvt.u64.u32 %rd6, %r5;\nadd.s64 %rd5, %rd4, %rd6;\nmov.u64 %rd20, 0;\nmov.u64 %rd21, 0;\n" +
         body +
         "mad.lo.s32 %r6, %r3, %r4, %r5;\nmul.wide.u32 %rd30, %r6, 16;\nadd.s64 %rd31, %rd1, %rd30;\n"
         "st.global.u64 [%rd31], %rd20;\nst.global.u64 [%rd31+8], %rd21;\nret;\n}\n";
}

ir::LaunchValues launch_of(uint32_t threads, uint32_t blocks, uint64_t n, uint64_t w) {
  ir::LaunchValues launch;
  launch.block = {threads, 1, 1};
  launch.grid = {blocks, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(n, 8);
  launch.add_parameter(w, 8);
  return launch;
}

constexpr uint64_t two32 = uint64_t(1) << 32;

} // namespace

TEST_CASE("division of 64 bits: both below 2^32, the divisor not 0") {
  for (const char* type : {"u64", "s64"}) {
    CAPTURE(type);
    const std::string t = type;
    RewrittenModule rewritten(
        kernel_text("add.s64 %rd7, %rd5, %rd2;\ndiv." + t + " %rd20, %rd7, %rd3;\nrem." + t + " %rd21, %rd7, %rd3;\n"),
        "narrow(force)");
    CHECK(rewritten.variant().find("div.u32") != std::string::npos);
    CHECK(rewritten.variant().find("rem.u32") != std::string::npos);
    CHECK(rewritten.variant().find("64 \t%rd20, %rd7") == std::string::npos);
    for (uint64_t w : {uint64_t(1), uint64_t(7), uint64_t(1) << 31, two32 - 1}) {
      CAPTURE(w);
      CHECK(rewritten.takes_variant(launch_of(32, 2, 0, w)));
      CHECK(rewritten.takes_variant(launch_of(32, 2, two32 - 64, w)));       // the last index is 2^32 - 1
      CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, two32 - 63, w))); // one more
      CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, ~uint64_t(0), w)));
    }
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0, 0)));
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0, two32)));
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0, ~uint64_t(0))));
  }
}

TEST_CASE("the compiler's test of high halves is decided") {
  const std::string body = "or.b64 %rd7, %rd5, %rd3;\nand.b64 %rd8, %rd7, -4294967296;\nsetp.ne.s64 %p1, %rd8, 0;\n"
                           "@%p1 bra $Long;\ncvt.u32.u64 %r10, %rd3;\ncvt.u32.u64 %r11, %rd5;\n"
                           "div.u32 %r12, %r11, %r10;\ncvt.u64.u32 %rd20, %r12;\nbra.uni $Join;\n"
                           "$Long:\ndiv.u64 %rd20, %rd5, %rd3;\n$Join:\nmov.b64 %rd21, %rd20;\n";
  RewrittenModule rewritten(kernel_text(body), "narrow(force)");
  CHECK(rewritten.variant().find("div.u64") == std::string::npos);
  CHECK(rewritten.variant().find("bra") == std::string::npos);
  for (uint64_t w : {uint64_t(1), uint64_t(5), two32 - 1}) {
    CAPTURE(w);
    CHECK(rewritten.takes_variant(launch_of(32, 2, 0, w)));
  }
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0, two32)));
}

TEST_CASE("comparisons of 64 bits") {
  for (const char* comparison : {"lt.s64", "ge.s64", "le.s64", "gt.s64", "eq.s64", "ne.s64", "lt.u64", "hs.u64"}) {
    CAPTURE(comparison);
    const bool is_unsigned = std::string(comparison).ends_with("u64");
    const std::string body =
        std::string("setp.") + comparison + " %p1, %rd5, %rd2;\nselp.b64 %rd20, %rd2, %rd3, %p1;\n";
    RewrittenModule rewritten(kernel_text(body), "narrow(force)");
    CHECK(rewritten.variant().find("64 \t%p1") == std::string::npos);
    for (uint64_t n : {uint64_t(0), uint64_t(1), uint64_t(31), uint64_t(63), uint64_t(64), (two32 >> 1) - 1}) {
      CAPTURE(n);
      CHECK(rewritten.takes_variant(launch_of(32, 2, n, 0)));
    }
    CHECK(rewritten.takes_variant(launch_of(32, 2, two32 >> 1, 0)) == is_unsigned);
    CHECK(rewritten.takes_variant(launch_of(32, 2, two32 - 1, 0)) == is_unsigned);
    CHECK(rewritten.takes_variant(launch_of(32, 2, ~uint64_t(0), 0)) == !is_unsigned); // -1
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, two32, 0)));
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, ~(two32 >> 1), 0))); // -2^31 - 1
  }
}

TEST_CASE("two-dimensional index: sums and products in front of the address are of 32 bits") {
  const std::string body = "mul.lo.s64 %rd7, %rd5, %rd2;\nadd.s64 %rd8, %rd7, %rd3;\nshl.b64 %rd9, %rd8, 2;\n"
                           "add.s64 %rd10, %rd1, %rd9;\nst.global.u32 [%rd10], %r5;\n";
  RewrittenModule rewritten(kernel_text(body), "narrow(force)");
  const std::string variant = rewritten.variant();
  CHECK(variant.find("mul.lo.s64") == std::string::npos);
  CHECK(variant.find("shl.b64") == std::string::npos);
  CHECK(variant.find("mul.wide.s32") != std::string::npos);
  CHECK(rewritten.takes_variant(launch_of(32, 2, 100, 5)));
  CHECK(rewritten.takes_variant(launch_of(32, 2, uint64_t(0) - 100, 5)));         // a pitch below 0
  CHECK(rewritten.takes_variant(launch_of(32, 2, 100, (two32 >> 1) - 1 - 6300))); // 63*100 + w = 2^31 - 1
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 100, (two32 >> 1) - 6300)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, two32, 5)));
}

TEST_CASE("loop counters") {
  const std::string body = "mov.u64 %rd7, %rd5;\nsetp.ge.u64 %p1, %rd7, %rd2;\n@%p1 bra $Done;\n"
                           "$L:\nshl.b64 %rd8, %rd7, 2;\nadd.s64 %rd9, %rd1, %rd8;\nst.global.u32 [%rd9], %r5;\n"
                           "add.s64 %rd7, %rd7, 64;\nsetp.lt.u64 %p2, %rd7, %rd2;\n@%p2 bra $L;\n$Done:\n";
  RewrittenModule rewritten(kernel_text(body), "narrow(force)");
  const std::string variant = rewritten.variant();
  CHECK(variant.find("setp.lt.u32") != std::string::npos);
  CHECK(variant.find("add.s32") != std::string::npos);
  CHECK(variant.find("shl.b64") == std::string::npos);
  CHECK(rewritten.takes_variant(launch_of(32, 2, 1000, 0)));
  CHECK(rewritten.takes_variant(launch_of(32, 2, 0, 0)));
  CHECK(rewritten.takes_variant(launch_of(32, 2, 63, 0)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, two32, 0)));
  // The counter goes up to 63 beyond the limit.
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, two32 - 1, 0)));
}

TEST_CASE("the kernel's own truncation of a loop counter does not keep its 64 bits") {
  const std::string head = "mov.u64 %rd7, %rd5;\nmov.u32 %r20, 0;\nsetp.ge.u64 %p1, %rd7, %rd2;\n@%p1 bra $Done;\n$L:\n"
                           "shl.b64 %rd8, %rd7, 2;\nadd.s64 %rd9, %rd1, %rd8;\n";
  const std::string tail = "add.s64 %rd7, %rd7, 64;\nsetp.lt.u64 %p2, %rd7, %rd2;\n@%p2 bra $L;\n$Done:\n";
  const std::string truncated = "cvt.u32.u64 %r21, %rd7;\nst.global.u32 [%rd9], %r21;\n";
  RewrittenModule rewritten(kernel_text(head + truncated + tail), "narrow(force)");
  const std::string variant = rewritten.variant();
  CHECK(variant.find("setp.lt.u32") != std::string::npos);
  CHECK(variant.find(", 64;") == variant.rfind(", 64;")); // one counter, of 32 bits
  CHECK(variant.find("add.s32") != std::string::npos);
  CHECK(rewritten.takes_variant(launch_of(32, 2, 1000, 0)));
  // A truncation to 16 bits is not a copy, and a counter stored as a whole stays.
  for (const char* other :
       {"cvt.u16.u64 %rs1, %rd7;\nst.global.u16 [%rd9], %rs1;\n", "st.global.u64 [%rd9], %rd7;\n"}) {
    CAPTURE(other);
    RewrittenModule kept(kernel_text(".reg .b16 %rs<3>;\n" + head + other + tail), "narrow(force)");
    CHECK(kept.variant().find("add.s64 \t%rd7, %rd7, 64") != std::string::npos);
  }
}

TEST_CASE("a loop counter that starts from a register of any 32-bit type") {
  for (const char* type : {"b32", "u32", "s32"}) {
    CAPTURE(type);
    const std::string body = std::string("{ .reg .") + type +
                             " %start;\nadd.u32 %start, %r5, 3;\ncvt.u64.u32 %rd7, %start;\n"
                             "setp.ge.u64 %p1, %rd7, %rd2;\n@%p1 bra $Done;\n"
                             "$L:\nadd.s64 %rd20, %rd20, 1;\nadd.s64 %rd7, %rd7, 64;\n"
                             "setp.lt.u64 %p2, %rd7, %rd2;\n@%p2 bra $L;\n$Done:\n}\n";
    RewrittenModule rewritten(kernel_text(body), "narrow(force)");
    CHECK(rewritten.variant().find("setp.lt.u32") != std::string::npos);
    CHECK(rewritten.takes_variant(launch_of(32, 2, 1000, 0)));
    CHECK(rewritten.takes_variant(launch_of(32, 2, 0, 0)));
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, two32, 0)));
  }
}

TEST_CASE("a loop over a pointer stays as it is") {
  const std::string body = "shl.b64 %rd7, %rd5, 2;\nadd.s64 %rd8, %rd1, %rd7;\nadd.s64 %rd9, %rd8, 4096;\n"
                           "$L:\nst.global.u32 [%rd8], %r5;\nadd.s64 %rd8, %rd8, 1024;\n"
                           "setp.ne.s64 %p2, %rd8, %rd9;\n@%p2 bra $L;\n";
  RewrittenModule rewritten(kernel_text(body), "narrow(force)");
  CHECK(rewritten.text.find("setp.ne.s32") == std::string::npos);
  CHECK(rewritten.text.find("setp.ne.u32") == std::string::npos);
}

namespace {

std::string kernel_of_32_bits(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u32 n, .param .u32 w)\n"
         "{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
         "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [w];\n"
         "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.s32 %r6, %r3, %r4, %r5;\n" +
         body + "mul.wide.u32 %rd30, %r6, 16;\nadd.s64 %rd31, %rd1, %rd30;\nst.global.u32 [%rd31], %r20;\nret;\n}\n";
}

ir::LaunchValues small_launch(uint32_t n, uint32_t w) {
  ir::LaunchValues launch;
  launch.block = {32, 1, 1};
  launch.grid = {2, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(n, 4);
  launch.add_parameter(w, 4);
  return launch;
}

} // namespace

TEST_CASE("signed division of numbers that are not negative") {
  for (const char* operation : {"div", "rem"}) {
    CAPTURE(operation);
    RewrittenModule rewritten(
        kernel_of_32_bits("add.s32 %r7, %r6, %r1;\n" + std::string(operation) + ".s32 %r20, %r7, %r2;\n"),
        "narrow(force)");
    CHECK(rewritten.variant().find(std::string(operation) + ".u32") != std::string::npos);
    for (uint32_t w : {1u, 7u, 0x7fffffffu}) {
      CAPTURE(w);
      CHECK(rewritten.takes_variant(small_launch(0, w)));
      CHECK(rewritten.takes_variant(small_launch(0x7fffffff - 63, w)));
      CHECK_FALSE(rewritten.takes_variant(small_launch(0x7fffffff - 62, w)));
      CHECK_FALSE(rewritten.takes_variant(small_launch(0xffffffff, w)));
    }
    CHECK_FALSE(rewritten.takes_variant(small_launch(0, 0)));
    CHECK_FALSE(rewritten.takes_variant(small_launch(0, 0x80000000)));
  }
}

TEST_CASE("signs of numbers that are not negative") {
  // tid / 8 as compilers write it; a tid is non-negative in every launch.
  RewrittenModule proved(kernel_of_32_bits("shr.s32 %r7, %r5, 31;\nshr.u32 %r8, %r7, 29;\nadd.s32 %r9, %r5, %r8;\n"
                                           "shr.s32 %r20, %r9, 3;\n"),
                         "narrow(force)");
  CHECK(proved.text.find("k__") == std::string::npos);
  CHECK(proved.text.find("31;") == std::string::npos);
  RewrittenModule checked(kernel_of_32_bits("add.s32 %r7, %r6, %r1;\nshr.u32 %r20, %r7, 31;\n"), "narrow(force)");
  CHECK(checked.takes_variant(small_launch(0x7fffffff - 63, 0)));
  CHECK_FALSE(checked.takes_variant(small_launch(0x7fffffff - 62, 0)));
}

TEST_CASE("where the model chooses, a kernel is replaced for 1.25 % of its instructions") {
  // Two instructions less: of about 40, and of about 240 (0.8 %), enough for the bound of the other families.
  for (const int products : {20, 220}) {
    CAPTURE(products);
    std::string body = "shr.s32 %r7, %r5, 31;\nshr.u32 %r8, %r7, 29;\nadd.s32 %r9, %r5, %r8;\nshr.s32 %r20, %r9, 3;\n";
    for (int i = 0; i < products; ++i)
      body += "mad.lo.s32 %r20, %r20, %r20, %r5;\n";
    RewrittenModule rewritten(kernel_of_32_bits(body), "narrow(cost=model)");
    CHECK((rewritten.text.find("31;") == std::string::npos) == (products == 20));
  }
}

TEST_CASE("two comparisons for a range are one") {
  const std::string load = "mul.wide.u32 %rd2, %r6, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r7, [%rd3];\n"
                           "shr.s32 %r7, %r7, 26;\nld.global.u32 %r8, [%rd3+4];\n";
  for (const char* tests :
       {"setp.ge.s32 %p1, %r7, 0;\nsetp.lt.s32 %p2, %r7, %r1;\nand.pred %p3, %p1, %p2;\n",
        "setp.ge.s32 %p1, %r7, 0;\nsetp.lt.and.s32 %p3, %r7, %r1, %p1;\n",
        "setp.gt.s32 %p1, %r7, %r1;\nsetp.lt.or.s32 %p3, %r7, 0, %p1;\n",
        "setp.gt.s32 %p1, %r7, -1;\nsetp.le.s32 %p2, %r7, %r1;\nand.pred %p3, %p2, %p1;\n",
        "setp.lt.s32 %p1, %r7, 0;\nsetp.ge.s32 %p2, %r7, %r1;\nor.pred %p3, %p1, %p2;\n",
        "setp.ge.s32 %p1, %r7, 0;\nsetp.lt.s32 %p4, %r8, 5;\nand.pred %p5, %p1, %p4;\n"
        "setp.lt.s32 %p2, %r7, %r1;\nand.pred %p3, %p5, %p2;\n",
        "or.b32 %r9, %r7, %r6;\nsetp.lt.s32 %p1, %r9, 0;\nsetp.ge.s32 %p2, %r6, %r1;\nsetp.ge.s32 %p4, %r7, %r1;\n"
        "or.pred %p5, %p1, %p2;\nor.pred %p3, %p4, %p5;\n"}) {
    CAPTURE(tests);
    RewrittenModule rewritten(kernel_of_32_bits(load + tests + "selp.b32 %r20, 1, 2, %p3;\n"), "narrow(force)");
    const std::string variant = rewritten.variant();
    CHECK(variant.find(".u32 \t%p") + variant.find(".u32 %p") != 2 * std::string::npos);
    CHECK(variant.find("setp.ge.s32 \t%p") == std::string::npos);
    CHECK(variant.find(", 0;") == std::string::npos);
    CHECK(variant.find(", -1;") == std::string::npos);
    for (uint32_t n : {0u, 1u, 5u, 31u, 0x7fffffffu}) {
      CAPTURE(n);
      CHECK(rewritten.takes_variant(small_launch(n, 0)));
    }
    CHECK_FALSE(rewritten.takes_variant(small_launch(0x80000000, 0)));
    CHECK_FALSE(rewritten.takes_variant(small_launch(0xffffffff, 0)));
  }
}

TEST_CASE("data from memory stay as they are") {
  const std::string body =
      "shl.b64 %rd7, %rd5, 5;\nadd.s64 %rd8, %rd1, %rd7;\nld.global.u64 %rd9, [%rd8];\n"
      "div.u64 %rd20, %rd9, %rd3;\nsetp.lt.s64 %p1, %rd9, %rd2;\nselp.b64 %rd21, %rd3, %rd2, %p1;\n";
  RewrittenModule rewritten(kernel_text(body), "narrow(force)");
  CHECK(rewritten.count("div.u64") >= 1);
  CHECK(rewritten.text.find("div.u32") == std::string::npos);
  CHECK(rewritten.text.find("setp.lt.s32") == std::string::npos);
}

TEST_CASE("narrow and divisor, one after the other: a division of 64 bits becomes a product") {
  RewrittenModule rewritten(kernel_text("div.u64 %rd20, %rd5, %rd3;\nrem.u64 %rd21, %rd5, %rd3;\n"),
                            "narrow(force),divisor(force)");
  CHECK(rewritten.variant().find("div.") == std::string::npos);
  CHECK(rewritten.variant().find("rem.") == std::string::npos);
  for (uint64_t w : {uint64_t(1), uint64_t(7), uint64_t(1) << 31, two32 - 1}) {
    CAPTURE(w);
    CHECK(rewritten.takes_variant(launch_of(32, 2, 0, w)));
  }
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0, 0)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0, two32)));
}
