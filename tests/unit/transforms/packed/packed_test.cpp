// The pass `packed`: found in its patterns and refused one step outside of them; and the correctness of its halves, for
// all halves.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace ptxrewrite;

namespace {

std::string run_packed(const std::string& text) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.list())
    messages += diagnostic.message + "\n";
  REQUIRE_MESSAGE(module, messages << text);
  transforms::RunOptions options;
  options.verify_each = true;
  options.run_ptxas = false;
  auto report = transforms::run_pipeline(*module, *transforms::parse_pipeline("packed(force)"), options);
  REQUIRE_MESSAGE(report, report.error().message);
  return ir::print(*module);
}

std::string packed_kernel(const std::string& body, const std::string& version, const std::string& target) {
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %rd<9>;\n.reg .b16 "
         "%h<20>;\n"
         ".reg .f32 %f<40>;\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\nld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n" +
         body + "ret;\n}\n";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

std::string halves(const std::string& operations, const std::string& target = "sm_80") {
  return run_packed(packed_kernel("ld.global.b16 %h1, [%rd1];\nld.global.b16 %h2, [%rd1+2];\n"
                                  "cvt.f32.f16 %f1, %h1;\ncvt.f32.f16 %f2, %h2;\n" +
                                      operations + "st.global.b16 [%rd1], %h3;\n",
                                  "8.0", target));
}

const std::string four_loads = "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"
                               "ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd1+16];\n";

std::string pairs(const std::string& body, const std::string& version = "8.6", const std::string& target = "sm_100") {
  return run_packed(packed_kernel(body, version, target));
}

// Nearest half to x, ties to even; x is exact.
double as_half(double x) {
  if (x == 0) return 0;
  const double quantum = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / quantum) * quantum;
  return std::fabs(rounded) >= 65536 ? std::copysign(INFINITY, x) : rounded;
}

} // namespace

TEST_CASE("packed: an f32 operation between halves is one on halves") {
  const struct {
    const char *in_float, *in_half;
  } rows[] = {{"add.f32", "add.rn.f16"},     {"add.rn.f32", "add.rn.f16"}, {"sub.rn.ftz.f32", "sub.rn.f16"},
              {"mul.ftz.f32", "mul.rn.f16"}, {"min.f32", "min.f16"},       {"max.ftz.f32", "max.f16"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.in_float));
    const std::string text = halves(std::string(row.in_float) + " %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n");
    CHECK(has(text, row.in_half));
    CHECK_FALSE(has(text, "cvt."));
  }
  CHECK_FALSE(has(halves("max.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n", "sm_75"), "max.f16")); // needs sm_80
  CHECK(has(halves("add.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n", "sm_53"), "add.rn.f16"));
}

TEST_CASE("packed: literals that are halves") {
  CHECK(has(halves("mul.f32 %f3, %f1, 0f3F000000;\ncvt.rn.f16.f32 %h3, %f3;\n"), "mul.rn.f16")); // 0.5
  CHECK(has(halves("max.f32 %f3, %f1, 0f80000000;\ncvt.rn.f16.f32 %h3, %f3;\n"), "max.f16"));    // -0
  CHECK(has(halves("add.f32 %f3, %f1, 0f477FE000;\ncvt.rn.f16.f32 %h3, %f3;\n"), "add.rn.f16")); // 65504
  CHECK(has(halves("add.f32 %f3, %f1, 0f38800000;\ncvt.rn.f16.f32 %h3, %f3;\n"), "add.rn.f16")); // 2^-14
  for (const char* literal : {"0f3DCCCCCD" /* 0.1 */, "0f47800000" /* 65536 */, "0f3F801000" /* 1 + 2^-11 */,
                              "0f38000000" /* 2^-15: a subnormal half */, "0f7F800000", "0f7FFFFFFF"})
    CHECK_FALSE(
        has(halves(std::string("mul.f32 %f3, %f1, ") + literal + ";\ncvt.rn.f16.f32 %h3, %f3;\n"), "mul.rn.f16"));
}

TEST_CASE("packed: what is rounded otherwise, or more than twice, stays") {
  CHECK_FALSE(has(halves("fma.rn.f32 %f3, %f1, %f2, %f1;\ncvt.rn.f16.f32 %h3, %f3;\n"), "fma.rn.f16"));
  CHECK_FALSE(has(halves("add.rz.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n"), "add.rn.f16"));
  CHECK_FALSE(has(halves("add.f32 %f3, %f1, %f2;\ncvt.rz.f16.f32 %h3, %f3;\n"), "add.rn.f16"));
  CHECK_FALSE(has(halves("add.sat.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n"), "add.rn.f16"));
  CHECK_FALSE(has(halves("add.f32 %f3, %f1, %f2;\nmul.f32 %f4, %f3, %f1;\ncvt.rn.f16.f32 %h3, %f4;\n"), "mul.rn.f16"));
  CHECK_FALSE(
      has(halves("ld.global.f32 %f2, [%rd1+4];\nadd.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n"), "add.rn.f16"));
  CHECK_FALSE(has(halves("min.NaN.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\n"), "min.f16"));
}

// Products are exact in f32: 22 bits. Sums are multiples of 2^-24; rounding in f32 must not change the resulting half.
TEST_CASE("packed: two roundings of a sum are one, for all pairs of halves") {
  std::vector<float> all; // not negative, finite
  for (int bits = 0; bits < 0x7c00; ++bits)
    all.push_back(static_cast<float>(bits < 0x400 ? std::ldexp(bits, -24)
                                                  : std::ldexp(0x400 | (bits & 0x3ff), (bits >> 10) - 25)));
  size_t inexact = 0, wrong = 0;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j <= i; ++j) {
      const float a = all[i], b = all[j];
      const double sum = static_cast<double>(a) + b, difference = static_cast<double>(a) - b;
      const float rounded_sum = a + b, rounded_difference = a - b;
      if (static_cast<double>(rounded_sum) != sum) {
        ++inexact;
        wrong += as_half(static_cast<double>(rounded_sum)) != as_half(sum);
      }
      if (static_cast<double>(rounded_difference) != difference) {
        ++inexact;
        wrong += as_half(static_cast<double>(rounded_difference)) != as_half(difference);
      }
      wrong += static_cast<double>(a * b) != static_cast<double>(a) * b;
    }
  CHECK(inexact > 1000000);
  CHECK(wrong == 0);
}

TEST_CASE("packed: neighbours of vector loads are added, multiplied and both in pairs") {
  const std::string body = four_loads + "fma.rn.f32 %f9, %f1, %f5, %f5;\nfma.rn.f32 %f10, %f2, %f6, %f6;\n"
                                        "add.f32 %f11, %f9, %f5;\nadd.f32 %f12, %f10, %f6;\n"
                                        "mul.rn.ftz.f32 %f13, %f3, %f7;\nmul.rn.ftz.f32 %f14, %f4, %f8;\n"
                                        "st.global.v4.f32 [%rd1], {%f11, %f12, %f13, %f14};\n";
  const std::string text = pairs(body);
  CHECK(count(text, "fma.rn.f32x2") == 1);
  CHECK(count(text, "add.f32x2") == 1);
  CHECK(count(text, "mul.rn.ftz.f32x2") == 1);
  CHECK_FALSE(has(text, "fma.rn.f32 "));
  CHECK_FALSE(has(pairs(body, "8.5", "sm_90"), "f32x2"));
  CHECK_FALSE(has(pairs(body, "8.6", "sm_90"), "f32x2"));
}

TEST_CASE("packed: no pair of operations of two kinds, of one that needs the other, or under a guard") {
  CHECK_FALSE(has(pairs(four_loads + "add.f32 %f9, %f1, %f5;\nsub.f32 %f10, %f2, %f6;\n"
                                     "st.global.v2.f32 [%rd1], {%f9, %f10};\n"),
                  "f32x2"));
  CHECK_FALSE(has(pairs(four_loads + "add.rn.f32 %f9, %f1, %f5;\nadd.f32 %f10, %f2, %f6;\n"
                                     "st.global.v2.f32 [%rd1], {%f9, %f10};\n"),
                  "f32x2"));
  CHECK_FALSE(has(pairs(four_loads + "add.f32 %f9, %f1, %f1;\nadd.f32 %f10, %f2, %f9;\n"
                                     "st.global.v2.f32 [%rd1], {%f9, %f10};\n"),
                  "f32x2"));
  CHECK_FALSE(has(pairs(four_loads + "setp.eq.u32 %p1, %r1, 0;\nmov.f32 %f10, %f1;\n"
                                     "add.f32 %f9, %f1, %f5;\n@%p1 add.f32 %f10, %f2, %f6;\n"
                                     "st.global.v2.f32 [%rd1], {%f9, %f10};\n"),
                  "f32x2"));
  // Halves of two pairs.
  CHECK_FALSE(has(pairs(four_loads + "add.f32 %f9, %f2, %f6;\nadd.f32 %f10, %f3, %f7;\n"
                                     "st.global.v2.f32 [%rd1], {%f9, %f10};\n"),
                  "f32x2"));
  // Read between the two, where the second's operand is not available yet.
  CHECK_FALSE(has(pairs("ld.global.v2.f32 {%f1, %f2}, [%rd1];\nadd.f32 %f9, %f1, 0f3F800000;\n"
                        "st.global.f32 [%rd1], %f9;\nld.global.f32 %f3, [%rd1];\nadd.f32 %f10, %f2, %f3;\n"
                        "st.global.f32 [%rd1+4], %f10;\n"),
                  "f32x2"));
}

TEST_CASE("packed: a pair stands where all operands are known and nobody has read a result") {
  // The first result is stored after the second; the second's operand is computed in between.
  const std::string late = pairs("ld.global.v2.f32 {%f1, %f2}, [%rd1];\nmul.f32 %f9, %f1, %f1;\n"
                                 "ld.global.v2.f32 {%f3, %f4}, [%rd1+8];\nmul.f32 %f10, %f2, %f2;\n"
                                 "add.f32 %f11, %f9, %f3;\nadd.f32 %f12, %f10, %f4;\n"
                                 "st.global.v2.f32 [%rd1], {%f11, %f12};\n");
  CHECK(has(late, "mul.f32x2"));
  CHECK(has(late, "add.f32x2"));
  // Two chains in sequence.
  const std::string chains =
      pairs("ld.global.v2.f32 {%f1, %f2}, [%rd1];\nmul.f32 %f9, %f1, %f1;\nmul.f32 %f10, %f9, %f1;\n"
            "mul.f32 %f11, %f2, %f2;\nmul.f32 %f12, %f11, %f2;\n"
            "st.global.v2.f32 [%rd1], {%f10, %f12};\n");
  CHECK(count(chains, "mul.f32x2") == 2);
}

namespace {

std::string shorts(const std::string& operations, const std::string& lower = "%h9", const std::string& upper = "%h10",
                   const std::string& target = "sm_90") {
  return run_packed(packed_kernel("ld.global.v2.u16 {%h1, %h2}, [%rd1];\nld.global.v2.u16 {%h3, %h4}, [%rd1+4];\n" +
                                      operations + "st.global.v2.u16 [%rd1+8], {" + lower + ", " + upper + "};\n",
                                  "8.0", target));
}

std::string of_words(const std::string& operation, const std::string& extension, const std::string& second = "") {
  const std::string other = second.empty() ? extension : second;
  return "cvt." + extension + " %r2, %h1; cvt." + extension + " %r3, %h3; " + operation + " %r4, %r2, %r3;\n" + "cvt." +
         other + " %r5, %h2; cvt." + other + " %r6, %h4; " + operation +
         " %r7, %r5, %r6;\ncvt.u16.u32 %h9, %r4; cvt.u16.u32 %h10, %r7;\n";
}

} // namespace

TEST_CASE("packed: two 16-bit integers are one word, where the target has the operation") {
  CHECK(has(shorts(of_words("max.s32", "s32.s16")), "max.s16x2"));
  CHECK(has(shorts(of_words("min.s32", "s32.s16")), "min.s16x2"));
  CHECK(has(shorts(of_words("max.s32", "u32.u16")), "max.u16x2"));
  CHECK(has(shorts(of_words("min.u32", "u32.u16")), "min.u16x2"));
  CHECK(has(shorts(of_words("add.s32", "s32.s16")), "add.u16x2"));
  CHECK(has(shorts(of_words("add.s32", "u32.u16")), "add.u16x2"));
  CHECK(has(shorts("max.s16 %h9, %h1, %h3; max.s16 %h10, %h4, %h2;\n"), "max.s16x2"));
  CHECK(has(shorts("min.u16 %h9, %h1, 7; min.u16 %h10, %h2, 300;\n"), "19660807")); // 300 << 16 | 7
  CHECK(has(shorts("ld.global.u16 %h5, [%rd1+12]; max.s16 %h9, %h1, %h5; max.s16 %h10, %h2, %h5;\n"), "max.s16x2"));
  // A chain of minima and maxima of words.
  const std::string clamp =
      "cvt.s32.s16 %r2, %h1; min.s32 %r3, %r2, 100; max.s32 %r4, %r3, -5; cvt.u16.u32 %h9, %r4;\n"
      "cvt.s32.s16 %r5, %h2; min.s32 %r6, %r5, 100; max.s32 %r7, %r6, -5; cvt.u16.u32 %h10, %r7;\n";
  CHECK(has(shorts(clamp), "min.s16x2"));
  CHECK(has(shorts(clamp), "max.s16x2"));
}

TEST_CASE("packed: 16-bit integers are left alone one step outside of the patterns") {
  const std::string good = of_words("max.s32", "s32.s16");
  CHECK(count(shorts(good, "%h9", "%h10", "sm_89"), "x2") == 0);
  CHECK(count(shorts(good, "%h10", "%h9"), "x2") == 0);                                // exchanged halves
  CHECK(count(shorts(of_words("max.u32", "s32.s16")), "x2") == 0);                     // the order of another type
  CHECK(count(shorts(of_words("max.s32", "s32.s16", "u32.u16")), "x2") == 0);          // two kinds of extension
  CHECK(count(shorts(of_words("sub.s32", "s32.s16")), "x2") == 0);                     // no such instruction
  CHECK(count(shorts("add.s16 %h9, %h1, %h3; max.s16 %h10, %h2, %h4;\n"), "x2") == 0); // two operations
  CHECK(count(shorts("max.s16 %h9, %h1, %h3; max.u16 %h10, %h2, %h4;\n"), "x2") == 0);
  CHECK(count(shorts("max.s16 %h9, %h1, %h4; max.s16 %h10, %h2, %h3;\n"), "x2") == 0); // crossed operands
  CHECK(count(shorts("max.s16 %h9, %h5, %h6; max.s16 %h10, %h7, %h8;\n"), "x2") == 0); // no pair is in one word
  // The sum of two extended numbers may be no extended number.
  const std::string sums = "cvt.s32.s16 %r2, %h1; cvt.s32.s16 %r3, %h3; add.s32 %r4, %r2, %r3; max.s32 %r4, %r4, 0;\n"
                           "cvt.s32.s16 %r5, %h2; cvt.s32.s16 %r6, %h4; add.s32 %r7, %r5, %r6; max.s32 %r7, %r7, 0;\n"
                           "cvt.u16.u32 %h9, %r4; cvt.u16.u32 %h10, %r7;\n";
  CHECK(count(shorts(sums), "x2") == 0);
  // A literal beyond 16 bits.
  const std::string wide = "cvt.s32.s16 %r2, %h1; max.s32 %r4, %r2, 40000; cvt.s32.s16 %r5, %h2; max.s32 %r7, %r5, 0;\n"
                           "cvt.u16.u32 %h9, %r4; cvt.u16.u32 %h10, %r7;\n";
  CHECK(count(shorts(wide), "x2") == 0);
}
