// Four bytes with equal computations, and sums over bytes: found in their patterns, refused one step outside of them.
// tests/rules proves and tests/families tests that the replacements compute the same.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

using namespace ptxrewrite;

namespace {

std::string run_composite(const std::string& body) {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .b64 %rd<3>;\n.reg .b16 %h<20>;\n.reg .b32 %r<60>;\n.reg .b32 %b<40>;\n.reg .f32 %f<20>;\n"
      "ld.param.u64 %rd1, [p];\n" +
      body + "ret;\n}\n";
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  std::string messages;
  for (const Diagnostic& diagnostic : diagnostics.list())
    messages += diagnostic.message + "\n";
  REQUIRE_MESSAGE(module, messages << text);
  transforms::RunOptions options;
  options.verify_each = true;
  options.run_ptxas = false;
  auto report =
      transforms::run_pipeline(*module, *transforms::parse_pipeline("composite(force,families=bytes+dot)"), options);
  REQUIRE_MESSAGE(report, report.error().message);
  return ir::print(*module);
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// %r1 and %r2 are words; `of` computes %r(20+i) from %b(i) and %b(8+i), byte i of the one and byte order[i] of the
// other; %r30 combines the four.
std::string together(const std::string& of, const std::array<unsigned, 4>& order = {0, 1, 2, 3}) {
  std::string body = "ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];\n";
  for (unsigned i = 0; i < 4; ++i) {
    body += "bfe.u32 %b" + std::to_string(i) + ", %r1, " + std::to_string(8 * i) + ", 8;\nbfe.u32 %b" +
            std::to_string(8 + i) + ", %r2, " + std::to_string(8 * order[i]) + ", 8;\n";
    std::string element = of;
    for (const auto& [name, value] :
         {std::pair{"$a", "%b" + std::to_string(i)}, std::pair{"$b", "%b" + std::to_string(8 + i)},
          std::pair{"$t", "%b" + std::to_string(16 + i)}, std::pair{"$u", "%b" + std::to_string(24 + i)},
          std::pair{"$d", "%r" + std::to_string(20 + i)}})
      for (size_t at = element.find(name); at != std::string::npos; at = element.find(name))
        element.replace(at, 2, value);
    body += element;
  }
  return body + "prmt.b32 %r28, %r20, %r21, 0x0040;\nprmt.b32 %r29, %r22, %r23, 0x0040;\n"
                "prmt.b32 %r30, %r28, %r29, 0x5410;\nst.global.u32 [%rd1], %r30;\n";
}

constexpr const char* vector_load = "ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%rd1];\n"
                                    "ld.global.v4.u8 {%h5, %h6, %h7, %h8}, [%rd1+4];\n";

} // namespace

TEST_CASE("composite bytes: averages, extremes and sums of four bytes in one register") {
  const std::string average = "add.s32 $t, $a, $b;\nadd.s32 $u, $t, 1;\nshr.u32 $d, $u, 1;\n";
  CHECK_FALSE(holds(run_composite(together(average)), "bfe"));
  CHECK(holds(run_composite(together(average)), "0xfefefefe"));
  CHECK(holds(run_composite(together("min.u32 $d, $b, $a;\n")), "vabsdiff4"));
  CHECK(holds(run_composite(together("max.s32 $d, $a, $b;\n")), "vabsdiff4"));
  CHECK(holds(run_composite(together("add.s32 $d, $a, $b;\n")), "0x7f7f7f7f"));
  CHECK(holds(run_composite(together("add.s32 $t, $a, $b;\nmin.s32 $d, $t, 255;\n")), "0x7f7f7f7f"));
  CHECK(holds(run_composite(together("sub.s32 $t, $a, $b;\nabs.s32 $d, $t;\n")), "vabsdiff4"));
}

TEST_CASE("composite bytes: one step outside") {
  const std::string average = "add.s32 $t, $a, $b;\nadd.s32 $u, $t, 1;\nshr.u32 $d, $u, 1;\n";
  CHECK(holds(run_composite(together(average, {0, 2, 1, 3})), "bfe")); // bytes at other positions
  CHECK(holds(run_composite(together("add.s32 $t, $a, $b;\nadd.s32 $u, $t, 2;\nshr.u32 $d, $u, 1;\n")), "bfe"));
  CHECK(holds(run_composite(together("add.s32 $t, $a, $b;\nadd.s32 $u, $t, 1;\nshr.u32 $d, $u, 2;\n")), "bfe"));
  CHECK(holds(run_composite(together("add.s32 $t, $a, $b;\nmin.s32 $d, $t, 254;\n")), "bfe"));
  CHECK(holds(run_composite(together("sub.s32 $d, $a, $b;\n")), "bfe"));
  // One of the four is different.
  std::string one_other = together("min.u32 $d, $a, $b;\n");
  one_other.replace(one_other.rfind("min.u32"), 7, "max.u32");
  CHECK(holds(run_composite(one_other), "bfe"));
}

TEST_CASE("composite bytes: vectors of bytes become registers where they are computed with in them, else they stay") {
  const auto stored = [](const std::string& operation) {
    std::string body = vector_load;
    for (unsigned i = 1; i <= 4; ++i)
      body += operation + " %h" + std::to_string(8 + i) + ", %h" + std::to_string(i) + ", %h" + std::to_string(4 + i) +
              ";\n";
    return run_composite(body + "st.global.v4.u8 [%rd1], {%h9, %h10, %h11, %h12};\n");
  };
  const std::string sums = stored("add.s16");
  CHECK_FALSE(holds(sums, ".v4.u8"));
  CHECK(holds(sums, "ld.global.b32"));
  CHECK(holds(sums, "st.global.b32"));
  CHECK(holds(stored("min.u16"), "vabsdiff4"));
  CHECK(holds(stored("mul.lo.u16"), "ld.global.v4.u8"));
  CHECK(holds(stored("mul.lo.u16"), "st.global.v4.u8"));
}

TEST_CASE("composite bytes: clamps are packed by one instruction for two") {
  const auto packed = [](const std::string& low, const std::string& high) {
    std::string body = "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];\n";
    for (unsigned i = 1; i <= 4; ++i)
      body += "max.s32 %b" + std::to_string(i) + ", %r" + std::to_string(i) + ", " + low + ";\nmin.s32 %r" +
              std::to_string(10 + i) + ", %b" + std::to_string(i) + ", " + high + ";\n";
    return run_composite(body + "shl.b32 %r20, %r12, 8;\nor.b32 %r21, %r20, %r11;\nshl.b32 %r22, %r13, 16;\n"
                                "or.b32 %r23, %r21, %r22;\nshl.b32 %r24, %r14, 24;\nor.b32 %r25, %r23, %r24;\n"
                                "st.global.u32 [%rd1], %r25;\n");
  };
  CHECK(holds(packed("0", "255"), "cvt.pack.sat.u8.s32.b32"));
  CHECK_FALSE(holds(packed("0", "254"), "cvt.pack"));
  CHECK_FALSE(holds(packed("1", "255"), "cvt.pack"));
  CHECK_FALSE(holds(packed("-1", "255"), "cvt.pack")); // the bytes overlap
  CHECK_FALSE(holds(packed("0", "256"), "cvt.pack"));
}

TEST_CASE("composite bytes: floats are clamped by the conversion only where NaN becomes 0") {
  const auto packed = [](const std::string& first, const std::string& second,
                         const std::string& cut = "cvt.rzi.u32.f32") {
    std::string body = "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n";
    for (unsigned i = 1; i <= 4; ++i)
      body += first + " %f" + std::to_string(4 + i) + ", %f" + std::to_string(i) + ", " +
              (first == "max.f32" ? "0f00000000" : "0f437F0000") + ";\n" + second + " %f" + std::to_string(8 + i) +
              ", %f" + std::to_string(4 + i) + ", " + (second == "max.f32" ? "0f00000000" : "0f437F0000") + ";\n" +
              cut + " %r" + std::to_string(10 + i) + ", %f" + std::to_string(8 + i) + ";\n";
    return run_composite(body + "prmt.b32 %r28, %r11, %r12, 0x0040;\nprmt.b32 %r29, %r13, %r14, 0x0040;\n"
                                "prmt.b32 %r30, %r28, %r29, 0x5410;\nst.global.u32 [%rd1], %r30;\n");
  };
  CHECK(holds(packed("max.f32", "min.f32"), "cvt.pack"));
  CHECK_FALSE(holds(packed("min.f32", "max.f32"), "cvt.pack"));
  CHECK_FALSE(holds(packed("max.f32", "min.f32", "cvt.rni.u32.f32"), "cvt.pack"));
  CHECK_FALSE(holds(packed("max.f32", "max.f32"), "cvt.pack"));
}

TEST_CASE("composite bytes: sums of differences, of the same bytes") {
  const auto sum = [](const std::string& of, unsigned shift_of_last) {
    std::string body = "ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];\nld.global.u32 %r40, [%rd1+8];\n";
    for (unsigned i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i), from = std::to_string(40 + i), to = std::to_string(41 + i);
      body += "bfe.u32 %b" + n + ", %r1, " + std::to_string(8 * i) + ", 8;\nbfe.u32 %b1" + n + ", %r2, " +
              std::to_string(i == 3 ? shift_of_last : 8 * i) + ", 8;\nsub.s32 %b2" + n + ", %b" + n + ", %b1" + n +
              ";\n";
      body += of == "abs" ? "abs.s32 %b3" + n + ", %b2" + n + ";\nadd.s32 %r" + to + ", %b3" + n + ", %r" + from + ";\n"
                          : "mad.lo.s32 %r" + to + ", %b2" + n + ", %b2" + n + ", %r" + from + ";\n";
    }
    return run_composite(body + "st.global.u32 [%rd1], %r44;\n");
  };
  CHECK(holds(sum("abs", 24), "vabsdiff4.u32.u32.u32.add"));
  CHECK_FALSE(holds(sum("abs", 16), "vabsdiff4"));
  CHECK(holds(sum("square", 24), "dp4a.u32.u32"));
  CHECK(holds(sum("square", 24), "vabsdiff4.u32.u32.u32 "));
  CHECK_FALSE(holds(sum("square", 16), "dp4a"));
}
