// R2D2's hardware form in loops (paper §3.1.2): the first trip's value is in a linear register, the steps are in one
// register shared by all threads, and the number of instructions never grows.
#include "tests/unit/paths.h"
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"

#include <algorithm>
#include <cctype>

namespace ptxrewrite::tests::r2d2_loops_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::Discharge;
using transforms::OutputForm;

namespace {

std::string module_text(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 "
         "n, "
         ".param .u32 m)\n{\n.reg .pred %p<9>;\n.reg .f32 %f<40>;\n.reg .b32 %r<80>;\n.reg .b64 %rd<120>;\n"
         ".shared .align 4 .b8 tile[4096];\n"
         "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [m];\n"
         "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\n" +
         body + "ret;\n}\n";
}

// The remaining code of the kernel, from the table of linear registers on.
std::string body_of(const std::string& text) {
  size_t at = text.rfind(".r2d2.linear");
  REQUIRE(at != std::string::npos);
  return text.substr(text.find('\n', at) + 1);
}

// From the label L on.
std::string loop_of(const std::string& text) {
  return text.substr(text.rfind("\nL:"));
}

ir::LaunchValues launch_of(uint32_t n, uint32_t m, uint32_t threads = 40, uint32_t blocks = 2) {
  ir::LaunchValues launch;
  launch.block = {threads, 1, 1};
  launch.grid = {blocks, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(0x7f0000800000, 8);
  launch.add_parameter(n, 4);
  launch.add_parameter(m, 4);
  return launch;
}

// Checks for the same accesses in launches with few and many trips, also from the printed text. Returns that text.
std::string check_same(Rewrite& rewrite) {
  std::vector<ir::LaunchValues> launches{launch_of(1, 1), launch_of(2, 3), launch_of(5, 7), launch_of(4, 1000, 3, 1)};
  ir::LinearForms forms(*rewrite.before);
  std::vector<std::vector<ThreadTrace>> expected;
  for (const ir::LaunchValues& launch : launches) {
    REQUIRE(rewrite.launch_allowed(forms, launch));
    expected.push_back(KernelEvaluator(*rewrite.before, launch).run());
    CHECK(KernelEvaluator(*rewrite.after, launch).run() == expected.back());
  }
  std::string name(rewrite.rewritten->text(rewrite.after->name));
  std::string text = rewrite.file();
  std::unique_ptr<ir::Module> again = read_text(text);
  CHECK(ir::print(*again) == text);
  for (size_t i = 0; i < launches.size(); ++i)
    CHECK(KernelEvaluator(kernel(*again, name), launches[i]).run() == expected[i]);
  return text;
}

// Thread i walks p and q from element i on, `step` bytes at a time.
std::string two_pointers(const std::string& step, const std::string& in_loop = {}) {
  return module_text("mad.lo.s32 %r6, %r4, %r5, %r3;\nmul.wide.u32 %rd3, %r6, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
                     "add.s64 %rd5, %rd2, %rd3;\nmul.wide.s32 %rd9, %r2, 8;\nmov.u32 %r7, 0;\n"
                     "L:\nld.global.u32 %r8, [%rd4];\nst.global.u32 [%rd5+4], %r8;\n" +
                     in_loop + "add.s64 %rd4, %rd4, " + step + ";\nadd.s64 %rd5, %rd5, " + step +
                     ";\nadd.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r1;\n@%p1 bra L;\n");
}

} // namespace

TEST_CASE("Pointers that move in the same steps share one register for their offset") {
  for (const char* step : {"16", "%rd9"}) {
    CAPTURE(step);
    Rewrite rewrite(two_pointers(step), "k", OutputForm::hardware);
    REQUIRE(rewrite.changed());
    CHECK(rewrite.statistic("increments") == 1);
    CHECK(rewrite.statistic("linear-registers") == 2);
    std::string text = check_same(rewrite), body = body_of(text);
    INFO(text);
    CHECK(occurrences(body, "add.s64") == 1);
    CHECK(occurrences(body, "[%lr0+%rd") == 1);
    CHECK(occurrences(body, "[%lr1+%rd") == 1);
    // 5 in the loop become 4, and the address computations are removed.
    // A step that is no literal is multiplied and added in one machine instruction.
    CHECK(occurrences(body, "mul.wide") == (std::isdigit(step[0]) ? 0 : 1));
    CHECK(occurrences(body, "mad") == 0);
  }
}

TEST_CASE("Addresses that are the same for all threads are a launch's constant and one increment") {
  // As `samples[k]` of mri-q: only the kernel's own counter is in these addresses.
  const std::string text = module_text(
      "mul.wide.u32 %rd6, %r5, 4;\nadd.s64 %rd7, %rd2, %rd6;\nmul.wide.u32 %rd8, %r3, 4;\nadd.s64 %rd9, %rd2, %rd8;\n"
      "mov.u32 %r7, 0;\nmov.u32 %r10, 0;\n"
      "L:\nmul.wide.u32 %rd3, %r7, 16;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd7, %rd3;\n"
      "add.s64 %rd10, %rd2, %rd3;\nld.global.u32 %r8, [%rd4+8];\nld.global.u32 %r9, [%rd5];\n"
      "ld.global.u32 %r11, [%rd10];\nadd.u32 %r10, %r10, %r8;\nadd.u32 %r10, %r10, %r9;\n"
      "add.u32 %r10, %r10, %r11;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p1, %r7, 100;\n@%p1 bra L;\n"
      "st.global.u32 [%rd9], %r10;\n");
  Rewrite rewrite(text, "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  CHECK(rewrite.statistic("increments") == 1);
  const std::string printed = check_same(rewrite), loop = loop_of(printed);
  INFO(printed);
  CHECK(occurrences(printed, " = 0 + %br") == 3); // no part of a thread's
  CHECK(occurrences(loop, "ld.global.u32") == 3);
  CHECK(occurrences(loop, "+%rd") == 3); // each [%lrN+%rdM], with an immediate in one
  CHECK(occurrences(loop, "mul.wide") == 0);
  CHECK(occurrences(loop, "add.s64") == 1);
}

TEST_CASE("Pointers with different steps have a register each; where one is needed as it is, nothing is gained") {
  std::string text = two_pointers("16");
  size_t second = text.find("add.s64 %rd5, %rd5, 16");
  Rewrite different(text.replace(second, 22, "add.s64 %rd5, %rd5, 24"), "k", OutputForm::hardware);
  CHECK(different.statistic("increments") == 2);
  check_same(different);

  // Both pointers themselves are stored, so they must be stepped.
  Rewrite needed(two_pointers("16", "st.shared.u64 [tile], %rd4;\nst.shared.u64 [tile+8], %rd5;\n"), "k",
                 OutputForm::hardware);
  CHECK(needed.statistic("increments") == 0);
  CHECK(needed.remarks_with("counting its steps would save nothing") > 0);
  CHECK(occurrences(loop_of(check_same(needed)), "add.s64") == 2);
}

TEST_CASE("A counter of the kernel that moves in the same steps is the offset") {
  Rewrite rewrite(module_text("mov.u32 %r6, tile;\nmov.u32 %r7, 64;\nmul.wide.u32 %rd3, %r3, 4;\n"
                              "add.s64 %rd4, %rd1, %rd3;\n"
                              "L:\nshl.b32 %r10, %r3, 2;\nadd.s32 %r8, %r6, %r7;\nadd.s32 %r11, %r8, %r10;\n"
                              "ld.shared.u32 %r9, [%r11+-64];\nst.global.u32 [%rd4], %r9;\n"
                              "add.s32 %r7, %r7, 128;\nsetp.ne.s32 %p1, %r7, 576;\n@%p1 bra L;\n"),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string text = check_same(rewrite), body = body_of(text);
  INFO(text);
  CHECK(rewrite.statistic("increments") == 0);
  CHECK(occurrences(body, "ld.shared.u32 \t%r9, [%lr") == 1);
  CHECK(occurrences(body, "+%r7+-64]") == 1);
  CHECK(occurrences(body, "add.s32") == 1); // the counter itself
}

TEST_CASE("An address behind the counter's own step reads the stepped counter: no second register stays alive") {
  Rewrite rewrite(module_text("mov.u32 %r6, tile;\nmov.u32 %r7, 0;\nmul.wide.u32 %rd3, %r3, 4;\n"
                              "add.s64 %rd4, %rd1, %rd3;\n"
                              "shl.b32 %r10, %r3, 3;\nadd.s32 %r11, %r6, %r10;\n"
                              "L:\nadd.s32 %r8, %r11, %r7;\nadd.s32 %r7, %r7, 128;\n"
                              "ld.shared.u32 %r9, [%r8];\nst.global.u32 [%rd4], %r9;\n"
                              "setp.ne.s32 %p1, %r7, 1024;\n@%p1 bra L;\n"),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string text = check_same(rewrite), body = body_of(text);
  INFO(text);
  CHECK(occurrences(body, "+%r7+-128]") == 1);
  CHECK(occurrences(body, "add.s32") == 1);
  CHECK(occurrences(body, "mov.") == 1); // the counter's first value
}

TEST_CASE("In nested loops the inner offset starts from the outer one") {
  // p[i*m + j*8 + tid], unlike nvcc's code: recomputed in each trip.
  Rewrite rewrite(module_text("mov.u32 %r6, 0;\n"
                              "L:\nmov.u32 %r7, 0;\nmul.lo.s32 %r8, %r6, %r2;\nadd.s32 %r9, %r8, %r3;\n"
                              "mul.wide.s32 %rd3, %r9, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd6, %rd2, %rd3;\n"
                              "M:\nld.global.u32 %r10, [%rd4];\nst.global.u32 [%rd6], %r10;\n"
                              "add.s64 %rd4, %rd4, 32;\nadd.s64 %rd6, %rd6, 32;\n"
                              "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, 3;\n@%p1 bra M;\n"
                              "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p2, %r6, %r1;\n@%p2 bra L;\n"),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string text = check_same(rewrite), body = body_of(text);
  INFO(text);
  CHECK(rewrite.statistic("increments") == 2);
  // One per loop; that of the outer loop is four times a parameter.
  CHECK(occurrences(body, "add.s64") == 2);
  CHECK(occurrences(body, "mul") == 1);
  CHECK(occurrences(body, "mul.wide.s32") == 1);
  // The trips of the outer loop bound the index: a launch condition.
  CHECK(rewrite.obligations(Discharge::launch_checked) > 0);
  ir::LinearForms forms(*rewrite.before);
  CHECK_FALSE(rewrite.launch_allowed(forms, launch_of(5, 0x40000000)));
}

TEST_CASE("A loop with two ways back adds the step on both") {
  Rewrite rewrite(module_text("mul.wide.u32 %rd3, %r3, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
                              "mov.u32 %r7, 0;\n"
                              "L:\nld.global.u32 %r8, [%rd4];\nld.global.u32 %r10, [%rd5];\n"
                              "add.s64 %rd4, %rd4, 8;\nadd.s64 %rd5, %rd5, 8;\nadd.s32 %r7, %r7, 1;\n"
                              "and.b32 %r9, %r8, 1;\nsetp.eq.s32 %p2, %r9, 0;\nsetp.lt.s32 %p1, %r7, %r1;\n"
                              "@!%p1 bra END;\n@%p2 bra L;\nst.global.u32 [%rd1], %r10;\nbra L;\nEND:\n"),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  check_same(rewrite);
}

TEST_CASE("A step that is not the same for all threads: the first trip is linear, the rest is the original code") {
  std::string text = two_pointers("%rd3"); // 4 * (global thread number)
  Rewrite rewrite(text, "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string body = body_of(check_same(rewrite));
  INFO(body);
  CHECK(rewrite.statistic("increments") == 0);
  CHECK(occurrences(body, "r2d2.mov.b64") >= 1); // first values of the pointers
  CHECK(occurrences(loop_of(body), "add.s64") == 2);
  CHECK(occurrences(body, "ld.global.u32 \t%r8, [%rd") == 1);
}

TEST_CASE("An index that is widened in each trip of a loop without a known end stays as it is") {
  Rewrite rewrite(module_text("mov.u32 %r7, %r3;\n"
                              "L:\nmul.wide.s32 %rd3, %r7, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
                              "ld.global.u32 %r8, [%rd4];\nst.global.u32 [%rd5], %r8;\n"
                              "add.s32 %r7, %r7, 5;\nand.b32 %r9, %r8, 255;\nsetp.ne.s32 %p1, %r9, 0;\n@%p1 bra L;\n"),
                  "k", OutputForm::hardware);
  CHECK(rewrite.statistic("increments") == 0);
  CHECK(rewrite.remarks_with("nothing can show") > 0);
}

TEST_CASE("Samples' inner loops: matmul's addresses are not computed in the loop") {
  std::string text = file_text(source_path("samples/matmul/matmul.ptx"));
  Rewrite rewrite(text, "matmul_naive", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string printed = rewrite.file();
  INFO(printed);
  // Eight accesses in the unrolled loop; one offset for rows of a, one for columns of b.
  CHECK(rewrite.statistic("increments") == 2);
  CHECK(occurrences(body_of(Rewrite::printed(*rewrite.after)), "ld.global.f32 \t%f") == 10);
  CHECK(occurrences(body_of(Rewrite::printed(*rewrite.after)), ", [%lr") == 8);
}

// The counter is advanced in 64 bits, so that it is linear only while its extension does not wrap: a condition of the
// addition at the end of a trip, which the counter at the loop's beginning has from the back edge.
TEST_CASE("a header's value rests on the obligations of its back edges") {
  const std::string text = module_text("add.u32 %r10, %r3, %r1;\nmov.u32 %r11, 0;\nL:\n"
                                       "mul.wide.u32 %rd3, %r10, 4;\nadd.u64 %rd4, %rd1, %rd3;\n"
                                       "st.global.u32 [%rd4], %r11;\n"
                                       "cvt.u64.u32 %rd5, %r10;\nadd.u64 %rd6, %rd5, 1;\ncvt.u32.u64 %r10, %rd6;\n"
                                       "add.u32 %r11, %r11, 1;\nsetp.lt.u32 %p1, %r11, 16;\n@%p1 bra L;\n");
  std::unique_ptr<ir::Module> module = read_text(text);
  ir::Function& function = kernel(*module, "k");
  REQUIRE(ir::construct_ssa(function));
  ir::LinearForms forms(function);
  size_t counters = 0;
  for (ir::BlockId block : function.layout)
    for (ir::ValueId parameter : function.parameters(block)) {
      if (forms.form(parameter).coefficients[ir::form_index::tid_x] == forms.expressions().zero(32)) continue;
      CHECK(forms.form(parameter).kind == ir::ValueClass::linear_loop);
      CHECK_FALSE(forms.obligations(parameter).empty());
      ++counters;
    }
  CHECK(counters == 1);
}

} // namespace ptxrewrite::tests::r2d2_loops_test
