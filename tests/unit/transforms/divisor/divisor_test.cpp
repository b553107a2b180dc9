// Pass `divisor`: the divisions that it finds, its launch condition, and equal memory after the variant.
#include "tests/unit/transforms/variant_fixture.h"

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

namespace {

// A kernel k(p, n, w): `body` computes %r20 .. %r23, which are stored to consecutive words of each thread.
std::string kernel_text(const std::string& body, const std::string& head = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u32 n, .param .u32 w)" +
         head +
         "\n{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
         "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [w];\n"
         "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmad.lo.s32 %r6, %r3, %r4, %r5;\n" +
         body +
         "mul.wide.u32 %rd30, %r6, 16;\nadd.s64 %rd31, %rd1, %rd30;\nst.global.u32 [%rd31], %r20;\n"
         "st.global.u32 [%rd31+4], %r21;\nret;\n}\n";
}

ir::LaunchValues launch_of(uint32_t threads, uint32_t blocks, uint32_t n, uint32_t w) {
  ir::LaunchValues launch;
  launch.block = {threads, 1, 1};
  launch.grid = {blocks, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(n, 4);
  launch.add_parameter(w, 4);
  return launch;
}

constexpr uint32_t divisors[] = {1,       2,          3,        5,          7,         10,      31,
                                 32,      33,         100,      641,        0xffff,    0x10000, 0x10001,
                                 6700417, 0x3fffffff, 1u << 30, 0x7ffffffe, 0x7fffffff};

const char* const quotient_and_remainder = "div.s32 %r20, %r6, %r2;\nrem.s32 %r21, %r6, %r2;\n";

} // namespace

TEST_CASE("an index that is not negative: one product for quotient and remainder") {
  RewrittenModule rewritten(kernel_text(quotient_and_remainder), "divisor(force)");
  const std::string variant = rewritten.variant();
  CHECK(variant.find("div.") == std::string::npos);
  CHECK(variant.find("rem.") == std::string::npos);
  CHECK(rewritten.report.statistics.at("divisor.sites") == 2);
  size_t products = 0;
  for (size_t at = variant.find("mul.wide.u32"); at != std::string::npos; at = variant.find("mul.wide.u32", at + 1))
    ++products;
  CHECK(products == 2); // one is the address
  for (uint32_t w : divisors) {
    CAPTURE(w);
    CHECK(rewritten.takes_variant(launch_of(64, 3, 100, w)));
  }
  // No divisor, and negative ones; indices from 2^31 on.
  for (uint32_t w : {0u, 0x80000000u, 0xffffffffu, 0xfffffff9u}) {
    CAPTURE(w);
    CHECK_FALSE(rewritten.takes_variant(launch_of(64, 3, 100, w)));
  }
}

TEST_CASE("the largest index decides whether the variant runs") {
  // i + n, n the kernel's parameter: 2^31 - 1 is the last number of int.
  RewrittenModule rewritten(kernel_text("add.s32 %r7, %r6, %r1;\ndiv.s32 %r20, %r7, %r2;\nrem.s32 %r21, %r7, %r2;\n"),
                            "divisor(force)");
  for (uint32_t w : {1u, 2u, 3u, 7u, 0x7fffffffu}) {
    CAPTURE(w);
    CHECK(rewritten.takes_variant(launch_of(32, 2, 0x7fffffff - 63, w)));
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0x7fffffff - 62, w)));
    CHECK(rewritten.takes_variant(launch_of(32, 2, 0, w)));
    CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0xffffffff, w))); // -1
  }
}

TEST_CASE("dividends of any value: data from memory") {
  const char* const load = "mul.wide.u32 %rd2, %r6, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r7, [%rd3];\n";
  SUBCASE("unsigned") {
    RewrittenModule rewritten(kernel_text(std::string(load) + "div.u32 %r20, %r7, %r2;\nrem.u32 %r21, %r7, %r2;\n"),
                              "divisor(force)");
    CHECK(rewritten.variant().find(".param .u64 k_launch_param_") != std::string::npos); // added parameters
    for (uint32_t w : divisors) {
      CAPTURE(w);
      CHECK(rewritten.takes_variant(launch_of(64, 2, 0, w)));
    }
    for (uint32_t w : {0x80000000u, 0x80000001u, 0xfffffffeu, 0xffffffffu}) {
      CAPTURE(w);
      CHECK(rewritten.takes_variant(launch_of(64, 2, 0, w)));
    }
    CHECK_FALSE(rewritten.takes_variant(launch_of(64, 2, 0, 0)));
  }
  SUBCASE("signed") {
    RewrittenModule rewritten(kernel_text(std::string(load) + "div.s32 %r20, %r7, %r2;\nrem.s32 %r21, %r7, %r2;\n"),
                              "divisor(force)");
    CHECK(rewritten.variant().find("mad.hi.s32") != std::string::npos);
    for (uint32_t w : divisors) {
      CAPTURE(w);
      CHECK(rewritten.takes_variant(launch_of(64, 2, 0, w)));
    }
    for (uint32_t w : {0u, 0x80000000u, 0xffffffffu}) {
      CAPTURE(w);
      CHECK_FALSE(rewritten.takes_variant(launch_of(64, 2, 0, w)));
    }
  }
}

TEST_CASE("64 bits: data from memory, and indices in the 32-bit form") {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 w)\n{\n"
      ".reg .b32 %r<9>;\n.reg .b64 %rd<20>;\nld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [w];\nmov.u32 %r1, %tid.x;\n"
      "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmul.wide.u32 %rd3, %r2, %r3;\ncvt.u64.u32 %rd4, %r1;\n"
      "add.s64 %rd5, %rd3, %rd4;\nshl.b64 %rd6, %rd5, 5;\nadd.s64 %rd7, %rd1, %rd6;\nld.global.u64 %rd8, [%rd7];\n"
      "BODYst.global.u64 [%rd7], %rd10;\nst.global.u64 [%rd7+8], %rd11;\nret;\n}\n";
  auto with = [&](const std::string& body) {
    std::string all = text;
    return all.replace(all.find("BODY"), 4, body);
  };
  auto launch = [](uint64_t w, uint32_t blocks = 2) {
    ir::LaunchValues result;
    result.block = {32, 1, 1};
    result.grid = {blocks, 1, 1};
    result.add_parameter(0x7f0000000000, 8);
    result.add_parameter(w, 8);
    return result;
  };
  constexpr uint64_t wide_divisors[] = {2,
                                        3,
                                        7,
                                        10,
                                        0xffffffff,
                                        0x100000000,
                                        0x100000001,
                                        641,
                                        uint64_t(1) << 62,
                                        (uint64_t(1) << 62) + 1,
                                        INT64_MAX - 1,
                                        INT64_MAX};
  for (const char* type : {"u64", "s64"}) {
    CAPTURE(type);
    const std::string t = type;
    RewrittenModule data(with("div." + t + " %rd10, %rd8, %rd2;\nrem." + t + " %rd11, %rd8, %rd2;\n"),
                         "divisor(force)");
    CHECK(data.variant().find("div.") == std::string::npos);
    for (uint64_t w : wide_divisors) {
      CAPTURE(w);
      CHECK(data.takes_variant(launch(w)));
    }
    CHECK_FALSE(data.takes_variant(launch(0)));
    CHECK(data.takes_variant(launch(1)) == (t == "s64"));
    CHECK_FALSE(data.takes_variant(launch(uint64_t(1) << 63)));

    RewrittenModule index(with("div." + t + " %rd10, %rd5, %rd2;\nrem." + t + " %rd11, %rd5, %rd2;\n"),
                          "divisor(force)");
    CHECK(index.variant().find("mul.hi") == std::string::npos);
    for (uint64_t w : {1ull, 2ull, 3ull, 31ull, 0x7fffffffull, 0x80000000ull, 0xffffffffull}) {
      CAPTURE(w);
      CHECK(index.takes_variant(launch(w)));
    }
    for (uint64_t w : {0ull, 0x100000000ull, 0x8000000000000000ull}) {
      CAPTURE(w);
      CHECK_FALSE(index.takes_variant(launch(w)));
    }
  }
}

TEST_CASE("quotients of quotients and of remainders: the index of an image's channel") {
  const std::string body = "rem.s32 %r8, %r6, %r2;\ndiv.s32 %r9, %r6, %r2;\nrem.s32 %r20, %r9, %r1;\n"
                           "mul.lo.s32 %r10, %r1, %r2;\ndiv.s32 %r11, %r6, %r10;\nadd.s32 %r21, %r8, %r11;\n";
  RewrittenModule rewritten(kernel_text(body), "divisor(force)");
  CHECK(rewritten.report.statistics.at("divisor.sites") == 4);
  CHECK(rewritten.variant().find("mad.hi.s32") == std::string::npos); // all are known to be non-negative
  CHECK(rewritten.takes_variant(launch_of(64, 3, 5, 7)));
  CHECK(rewritten.takes_variant(launch_of(64, 3, 1, 1)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(64, 3, 0, 7)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(64, 3, 7, 0)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(64, 3, 65536, 32768))); // the product is -2^31
  CHECK_FALSE(rewritten.takes_variant(launch_of(64, 3, 65536, 65536))); // and 0
}

TEST_CASE("what is left alone") {
  // Literals are left to the assembler; a divisor that differs between threads, or is read from memory; a guard.
  for (const char* body :
       {"div.s32 %r20, %r6, 7;\n", "div.s32 %r20, %r6, %r5;\n", "ld.global.u32 %r7, [%rd1];\ndiv.u32 %r20, %r6, %r7;\n",
        "setp.lt.s32 %p1, %r6, 5;\n@%p1 div.s32 %r20, %r6, %r2;\n", "div.u32 %r20, %r2, %r6;\n"}) {
    CAPTURE(body);
    CHECK_FALSE(RewrittenModule(kernel_text(body), "divisor(force)").changed());
  }
  // Without launch predicates there are no host-computed parameters.
  CHECK_FALSE(RewrittenModule(kernel_text(quotient_and_remainder), "divisor(force,discharge=proved)").changed());
}

TEST_CASE("a divisor of block dimensions is never 0") {
  RewrittenModule rewritten(kernel_text("div.u32 %r20, %r5, %r4;\nrem.u32 %r21, %r3, %r4;\n"), "divisor(force)");
  CHECK(rewritten.takes_variant(launch_of(64, 3, 0, 0)));
  CHECK(rewritten.takes_variant(launch_of(1, 3, 0, 0)));
  CHECK(rewritten.variant().find("requires") == std::string::npos);
}

TEST_CASE("in a loop: the counter's trips bound the dividend") {
  const std::string body = "mov.u32 %r20, 0;\nmov.u32 %r21, 0;\nmov.u32 %r10, %r6;\n"
                           "$L:\ndiv.s32 %r11, %r10, %r2;\nadd.s32 %r20, %r20, %r11;\nrem.s32 %r12, %r10, %r2;\n"
                           "xor.b32 %r21, %r21, %r12;\nadd.s32 %r10, %r10, 64;\nsetp.lt.s32 %p1, %r10, %r1;\n"
                           "@%p1 bra $L;\n";
  RewrittenModule rewritten(kernel_text(body), "divisor(force)");
  CHECK(rewritten.variant().find("mul.wide.u32") != std::string::npos);
  CHECK(rewritten.takes_variant(launch_of(32, 2, 1000, 7)));
  CHECK(rewritten.takes_variant(launch_of(32, 2, 0, 1)));
  CHECK_FALSE(rewritten.takes_variant(launch_of(32, 2, 0x7fffffff, 7))); // the counter would wrap
}
