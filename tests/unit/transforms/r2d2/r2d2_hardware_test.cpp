// R2D2's hardware form: the paper's figures, the register limit, guards, and that the printed text is read back.
#include "tests/unit/paths.h"
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"

#include <algorithm>

namespace ptxrewrite::tests::r2d2_hardware_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::Discharge;
using transforms::OutputForm;

namespace {

std::string module_text(const std::string& parameters, const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(" + parameters +
         ")\n{\n.reg .pred %p<40>;\n.reg .f32 %f<40>;\n.reg .b32 %r<80>;\n.reg .b64 %rd<120>;\n" + body + "}\n";
}

// The lines between `.r2d2.<name> {` and `}`.
std::string section(const std::string& text, const std::string& name) {
  size_t begin = text.find(".r2d2." + name + " {");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find('}', begin) - begin);
}

ir::LaunchValues backprop_launch(uint32_t hid, std::array<uint32_t, 3> block = {16, 16, 1}) {
  ir::LaunchValues launch;
  launch.block = block;
  launch.grid = {1, 3, 1};
  launch.add_parameter(0x7f0000100000, 8);
  launch.add_parameter(hid, 4);
  launch.add_parameter(0x7f0000200000, 8);
  launch.add_parameter(48, 4);
  launch.add_parameter(0x7f0000300000, 8);
  launch.add_parameter(0x7f0000400000, 8);
  return launch;
}

const std::string& backprop() {
  static const std::string text = file_text(source_path("samples/backprop/backprop.ptx"));
  return text;
}

} // namespace

TEST_CASE("Figure 9: bp_adjust_weights decouples into the four parts") {
  Rewrite rewrite(backprop(), "bp_adjust_weights", OutputForm::hardware, {"no-index-overflow"});
  REQUIRE(rewrite.changed());
  std::string text = Rewrite::printed(*rewrite.after);
  INFO(text);
  std::string coefficients = section(text, "coefficient");
  // Line 02 and 03: P1 and P5 are loaded; once each.
  CHECK(occurrences(coefficients, "[bp_adjust_weights_param_1]") == 1);
  CHECK(occurrences(coefficients, "[bp_adjust_weights_param_5]") == 1);
  // Line 04 and 05: multiply-adds 4*P1 + 4 and 4*P1 + P5.
  CHECK(occurrences(coefficients, ", 4, 4;") == 1);
  CHECK(occurrences(coefficients, "mad.") >= 2);
  CHECK(coefficients.find("%tid") == std::string::npos);
  // Lines 07 to 10: both thread indices are read once, the oldw part has two multiply-adds.
  std::string threads = section(text, "thread");
  CHECK(occurrences(threads, "%tid.x") == 1);
  CHECK(occurrences(threads, "%tid.y") == 1);
  CHECK(occurrences(threads, "mad.lo.s32") == 2); // 4*tid.x; 4*tid.y for ly: 32 bits are enough
  CHECK(occurrences(threads, "mad.lo.s64") == 1); // 4*(P1+1)*tid.y on top of the first
  // Lines 12 to 14: the block index is read once and multiplied by 64*(P1+1).
  std::string blocks = section(text, "block");
  CHECK(occurrences(blocks, "%ctaid.y") == 1);
  CHECK(occurrences(blocks, "%ctaid.x") == 0);
  // delta[tx+1], ly[16*by+ty+1], w and oldw[index] share one; w and oldw[tx+1] share one with delta.
  // tid.y and ctaid.y are operands of the condition at the end.
  CHECK(rewrite.statistic("linear-registers") == 5);
  CHECK(occurrences(text, ".r2d2.linear") == 5);
  // Line 16: the access adds its immediate to the linear register.
  CHECK(occurrences(text, "ld.global.f32") == 12);
  CHECK(text.find("mul.wide") == text.rfind("mul.wide", text.find(".r2d2.thread"))); // none after the sections
  CHECK(rewrite.obligations(Discharge::assumed) > 0);
  CHECK(rewrite.obligations(Discharge::launch_checked) == 0);
  CHECK(rewrite.rewritten->hardware_form);
  CHECK(rewrite.statistic("body-instructions-after") < rewrite.statistic("body-instructions-before"));
}

TEST_CASE("bp_adjust_weights does the same to memory; where an index wraps the launch condition is false") {
  Rewrite rewrite(backprop(), "bp_adjust_weights", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  CHECK(rewrite.obligations(Discharge::launch_checked) > 0);
  CHECK(rewrite.obligations(Discharge::assumed) == 0);
  ir::LinearForms forms(*rewrite.before);
  for (uint32_t hid : {0u, 1u, 16u, 4095u, 0x00ffffffu, 0xffffffffu, 0xfffffff0u, 0x07ffffffu, 0x0fffffffu, 0x7fffffffu,
                       0x80000000u}) {
    CAPTURE(hid);
    ir::LaunchValues launch = backprop_launch(hid);
    bool same = rewrite.same_traces(launch);
    if (rewrite.launch_allowed(forms, launch)) CHECK(same);
    if (hid == 16 || hid == 4095) CHECK(rewrite.launch_allowed(forms, launch));
    if (hid == 0x7fffffffu) CHECK_FALSE(rewrite.launch_allowed(forms, launch));
    if (hid == 0x07ffffffu)
      CHECK_FALSE(same); // 16*hid wraps: the rewritten kernel would be wrong, so the check matters
  }
}

// Section 4.4: a launch without enough registers for linear ones runs the original.
TEST_CASE("The original stays under its name beside the rewritten kernel, with launch conditions and without") {
  std::vector<std::string> assumptions;
  SUBCASE("checked at launch") {}
  SUBCASE("assumed") {
    assumptions.push_back("no-index-overflow");
  }
  Rewrite rewrite(backprop(), "bp_adjust_weights", OutputForm::hardware, assumptions);
  REQUIRE(rewrite.context.additions.size() == 1);
  const ir::Function& kept = *rewrite.context.additions[0];
  CHECK(rewrite.rewritten->text(kept.name) == "bp_adjust_weights");
  CHECK(rewrite.rewritten->text(rewrite.after->name) == "bp_adjust_weights__r2d2");
  CHECK(Rewrite::printed(kept) == Rewrite::printed(*rewrite.before));
  std::string text = Rewrite::printed(*rewrite.after);
  CHECK(occurrences(text, "//@ r2d2 original bp_adjust_weights\n") == 1);
  CHECK((occurrences(text, "//@ r2d2 requires ") >= 1) == assumptions.empty());
}

TEST_CASE("Figure 8: addresses that differ in the constant share one linear register") {
  std::string text = module_text(".param .u64 base, .param .u32 count", R"(
ld.param.u64 %rd3, [base];
ld.param.u32 %r5, [count];
mov.u32 %r6, %ctaid.x;
mov.u32 %r7, %ntid.x;
mov.u32 %r8, %tid.x;
mad.lo.s32 %r9, %r6, %r7, %r8;
mul.wide.s32 %rd4, %r9, 4;
add.s64 %rd17, %rd3, %rd4;
mul.wide.s32 %rd18, %r5, 4;
add.s64 %rd19, %rd17, %rd18;
add.s64 %rd20, %rd19, %rd18;
add.s64 %rd21, %rd20, %rd18;
add.s64 %rd22, %rd21, %rd18;
ld.global.f32 %f1, [%rd19];
ld.global.f32 %f2, [%rd17];
div.rn.f32 %f3, %f1, %f2;
ld.global.f32 %f4, [%rd20];
div.rn.f32 %f5, %f4, %f2;
ld.global.f32 %f6, [%rd21+16];
st.global.f32 [%rd22], %f6;
st.global.f32 [%rd22+4], %f5;
st.global.f32 [%rd22+8], %f3;
ret;
)");
  Rewrite rewrite(text, "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  CHECK(rewrite.statistic("linear-registers") == 1);
  CHECK(rewrite.statistic("body-instructions-after") == 10); // loads, divisions, stores, ret
  std::string printed = Rewrite::printed(*rewrite.after);
  CHECK(occurrences(printed, "%lr0+%cr") == 6); // all but [%rd17]
  CHECK(occurrences(printed, "[%lr0]") == 1);
  ir::LaunchValues launch;
  launch.block = {32, 1, 1};
  launch.grid = {3, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(1000, 4);
  CHECK(rewrite.same_traces(launch));
}

TEST_CASE("Of more than 16 forms, those that save most are kept; the others keep their instructions") {
  // Array i has the stride 12*(i+1): no two share. Arrays 0 to 2 are read in a loop, so they are worth the most.
  std::string body = "ld.param.u64 %rd1, [p];\nld.param.u32 %r2, [n];\nmov.u32 %r1, %tid.x;\nmov.u32 %r3, 0;\n"
                     "mov.f32 %f1, 0f00000000;\n";
  std::string loop, tail;
  for (int i = 0; i < 20; ++i) {
    std::string wide = "%rd" + std::to_string(2 + 2 * i), address = "%rd" + std::to_string(3 + 2 * i);
    std::string code = "mul.wide.s32 " + wide + ", %r1, " + std::to_string(12 * (i + 1)) + ";\nadd.s64 " + address +
                       ", %rd1, " + wide + ";\nld.global.f32 %f2, [" + address + "];\nadd.f32 %f1, %f1, %f2;\n";
    (i < 3 ? loop : tail) += code;
  }
  body += tail + "L:\n" + loop +
          "add.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, %r2;\n@%p1 bra L;\nst.global.f32 [%rd1], %f1;\nret;\n";
  Rewrite rewrite(module_text(".param .u64 p, .param .u32 n", body), "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string printed = Rewrite::printed(*rewrite.after);
  INFO(printed);
  CHECK(rewrite.statistic("linear-registers") == 16);
  CHECK(occurrences(printed, ".r2d2.linear") == 16);
  CHECK(rewrite.statistic("dropped-forms") == 5);
  CHECK(rewrite.remarks_with("dropped") == 5);
  // 20 arrays, and the parameter itself, the target of the final store.
  // 4 of the addresses remain, none of the loop's (12, 24, 36).
  size_t body_begin = printed.rfind(".r2d2.linear");
  std::string rest = printed.substr(body_begin);
  CHECK(occurrences(rest, "mul.wide.s32") == 4);
  for (const char* stride : {", 12;", ", 24;", ", 36;"})
    CHECK(occurrences(rest, stride) == 0);
  ir::LaunchValues launch;
  launch.block = {40, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(3, 4);
  CHECK(rewrite.same_traces(launch));

  transforms::PassOptions options;
  options.set("limit", "3");
  Rewrite limited(module_text(".param .u64 p, .param .u32 n", body), "k", OutputForm::hardware, {}, options);
  CHECK(limited.statistic("linear-registers") == 3);
  CHECK(limited.same_traces(launch));
}

// No block has more than 1024 threads in x: strides up to 2^31 / 1023 = 2099202 fit.
TEST_CASE("Thread parts take 32 bits where that is surely enough") {
  for (auto [stride, narrow] :
       {std::pair{"4", true}, {"-8", true}, {"2099202", true}, {"2099208", false}, {"-2147483648", false}}) {
    CAPTURE(stride);
    Rewrite rewrite(
        module_text(".param .u64 p", "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"
                                     "mul.wide.s32 %rd2, %r1, " +
                                         std::string(stride) +
                                         ";\nadd.s64 %rd3, %rd1, %rd2;\n"
                                         "ld.global.u32 %r3, [%rd3];\nst.global.u32 [%rd3+4], %r3;\nret;\n"),
        "k", OutputForm::hardware);
    REQUIRE(rewrite.changed());
    std::string threads = section(Rewrite::printed(*rewrite.after), "thread");
    CHECK(occurrences(threads, "mad.lo.s32") == (narrow ? 1 : 0));
    CHECK(occurrences(threads, "mad.lo.s64") == (narrow ? 0 : 1));
    ir::LaunchValues launch;
    launch.block = {1024, 1, 1};
    launch.add_parameter(0x7f0000000000, 8);
    CHECK(rewrite.same_traces(launch));
  }
}

TEST_CASE("A guarded access may use a linear address; a register that a guard changes may not") {
  std::string text = module_text(".param .u64 p, .param .u32 n", R"(
ld.param.u64 %rd1, [p];
ld.param.u32 %r2, [n];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 8;
add.s64 %rd3, %rd1, %rd2;
setp.lt.u32 %p1, %r1, %r2;
mov.u64 %rd4, %rd3;
@%p1 add.s64 %rd4, %rd3, 1000;
@%p1 ld.global.u32 %r3, [%rd3+4];
@!%p1 mov.u32 %r3, 5;
st.global.u32 [%rd4], %r3;
ret;
)");
  Rewrite rewrite(text, "k", OutputForm::hardware);
  ir::LaunchValues launch;
  launch.block = {8, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(3, 4);
  CHECK(rewrite.same_traces(launch));
  std::string printed = Rewrite::printed(*rewrite.after);
  INFO(printed);
  CHECK(printed.find("st.global.u32 [%lr") == std::string::npos);
}

TEST_CASE("The printed hardware form parses back to the same text") {
  for (bool assume : {false, true}) {
    std::vector<std::string> assumptions;
    if (assume) assumptions.push_back("no-index-overflow");
    Rewrite rewrite(backprop(), "bp_adjust_weights", OutputForm::hardware, assumptions);
    std::string text = rewrite.file();
    CHECK(text.rfind("//@ ptxrewrite hardware 1\n", 0) == 0);
    std::unique_ptr<ir::Module> again = read_text(text);
    CHECK(ir::print(*again) == text);
    // And it is still equivalent when it is read from the file.
    ir::LaunchValues launch = backprop_launch(17);
    ir::Function& function = kernel(*again, "bp_adjust_weights__r2d2");
    CHECK(KernelEvaluator(*rewrite.before, launch).run() == KernelEvaluator(function, launch).run());
  }
}

TEST_CASE("A kernel that saves nothing is left alone") {
  std::string text = module_text(".param .u64 p", "ld.param.u64 %rd1, [p];\nld.global.u64 %rd2, [%rd1];\n"
                                                  "st.global.u64 [%rd2], %rd1;\nret;\n");
  Rewrite rewrite(text, "k", OutputForm::hardware);
  CHECK_FALSE(rewrite.changed());
  CHECK_FALSE(rewrite.rewritten->hardware_form);
  CHECK(rewrite.context.ledger.empty());
}

} // namespace ptxrewrite::tests::r2d2_hardware_test
