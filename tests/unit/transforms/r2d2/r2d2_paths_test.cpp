// R2D2's hardware form for registers that are written on several paths or under a guard (paper §3.1.2), and the
// instructions that may be deleted.
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"

namespace ptxrewrite::tests::r2d2_paths_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::OutputForm;

namespace {

std::string module_text(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 "
         "n)\n"
         "{\n.reg .pred %p<9>;\n.reg .b32 %r<80>;\n.reg .b64 %rd<120>;\n"
         "ld.param.u64 %rd1, [p];\nld.param.u64 %rd2, [q];\nld.param.u32 %r1, [n];\n"
         "mov.u32 %r3, %tid.x;\nmov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\n" +
         body + "ret;\n}\n";
}

// The printed kernel from the table of linear registers on; checks that it is equivalent to the original and read back.
std::string checked_body(Rewrite& rewrite) {
  std::vector<ir::LaunchValues> launches;
  std::vector<std::vector<ThreadTrace>> expected;
  ir::LinearForms forms(*rewrite.before);
  for (uint32_t n : {0u, 1u, 7u, 20u}) {
    ir::LaunchValues launch;
    launch.block = {n == 1 ? 1u : 40u, 1, 1};
    launch.grid = {2, 1, 1};
    launch.add_parameter(0x7f0000000000, 8);
    launch.add_parameter(0x7f0000800000, 8);
    launch.add_parameter(n, 4);
    REQUIRE(rewrite.launch_allowed(forms, launch));
    expected.push_back(KernelEvaluator(*rewrite.before, launch).run());
    CHECK(KernelEvaluator(*rewrite.after, launch).run() == expected.back());
    launches.push_back(std::move(launch));
  }
  std::string name(rewrite.rewritten->text(rewrite.after->name));
  std::string text = rewrite.file();
  std::unique_ptr<ir::Module> again = read_text(text);
  CHECK(ir::print(*again) == text);
  for (size_t i = 0; i < launches.size(); ++i)
    CHECK(KernelEvaluator(kernel(*again, name), launches[i]).run() == expected[i]);
  size_t at = text.rfind(".r2d2.linear");
  return at == std::string::npos ? text : text.substr(text.find('\n', at) + 1);
}

// p[i], p[i + n], p[i + 2n] for an index %r10 computed by the preceding code.
const std::string three_accesses =
    "mul.wide.s32 %rd3, %r10, 4;\nadd.s64 %rd4, %rd1, %rd3;\nmul.wide.s32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd4, %rd5;\n"
    "add.s64 %rd7, %rd6, %rd5;\nld.global.u32 %r20, [%rd4];\nld.global.u32 %r21, [%rd6+8];\n"
    "st.global.u32 [%rd7], %r20;\n";

} // namespace

TEST_CASE("Where two paths come together, each moves its linear register at its end; the accesses share the result") {
  Rewrite rewrite(module_text("setp.lt.u32 %p1, %r3, %r1;\n@%p1 bra A;\n"
                              "mad.lo.s32 %r10, %r4, 64, %r3;\nbra JOIN;\n"
                              "A:\nshl.b32 %r10, %r3, 1;\nst.global.u32 [%rd2], %r3;\nJOIN:\n" +
                              three_accesses),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  CHECK(rewrite.statistic("joins") == 1);
  std::string body = checked_body(rewrite);
  INFO(body);
  CHECK(occurrences(body, "r2d2.mov.b64") == 2);
  CHECK(occurrences(body, "@%p1 r2d2.mov") == 0); // the branch has decided
  CHECK(occurrences(body, "mul.wide") == 0);
  CHECK(occurrences(body, "add.s64") == 0);
  CHECK(occurrences(body, "+%cr") == 2); // the two that differ by n and by 2n
  CHECK(body.find("r2d2.mov") < body.find("bra.uni") + body.size() * (body.find("bra.uni") == std::string::npos));
}

TEST_CASE("Of three paths each brings its own form") {
  Rewrite rewrite(module_text("setp.lt.u32 %p1, %r3, %r1;\nsetp.lt.u32 %p2, %r3, 8;\n@%p1 bra A;\n@%p2 bra B;\n"
                              "mad.lo.s32 %r10, %r4, 64, %r3;\nbra JOIN;\n"
                              "A:\nshl.b32 %r10, %r3, 1;\nbra JOIN;\nB:\nmul.lo.s32 %r10, %r3, 3;\nJOIN:\n" +
                              three_accesses),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  CHECK(rewrite.statistic("joins") == 1);
  std::string body = checked_body(rewrite);
  INFO(body);
  CHECK(occurrences(body, "r2d2.mov.b64") == 3);
  CHECK(occurrences(body, "mul.wide") == 0);
}

TEST_CASE("A select and a guarded definition are a move and a guarded move") {
  for (const char* select : {"add.s32 %r11, %r3, -16;\nselp.b32 %r10, %r3, %r11, %p1;\n",
                             "mov.u32 %r10, %r3;\n@!%p1 add.s32 %r10, %r3, -16;\n"}) {
    CAPTURE(select);
    Rewrite rewrite(module_text(std::string("setp.lt.u32 %p1, %r3, %r1;\n") + select + three_accesses), "k",
                    OutputForm::hardware);
    REQUIRE(rewrite.changed());
    CHECK(rewrite.statistic("joins") == 1);
    std::string body = checked_body(rewrite);
    INFO(body);
    CHECK(occurrences(body, "r2d2.mov.b64") == 2);
    CHECK(occurrences(body, "@%p1 r2d2.mov.b64") == 1);
    CHECK(occurrences(body, "mul.wide") == 0);
    CHECK(occurrences(body, "selp") == 0);
  }
}

TEST_CASE("Where moving the registers would cost more than the addresses, the code stays") {
  // One access, and the index is also needed as a number.
  Rewrite rewrite(module_text("setp.lt.u32 %p1, %r3, %r1;\nadd.s32 %r11, %r3, -16;\nselp.b32 %r10, %r3, %r11, %p1;\n"
                              "mul.wide.s32 %rd3, %r10, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"
                              "st.global.u32 [%rd4], %r10;\n"),
                  "k", OutputForm::hardware);
  CHECK(rewrite.statistic("joins") == 0);
  CHECK(rewrite.remarks_with("would save nothing") > 0);
  checked_body(rewrite);
}

TEST_CASE("A guarded definition with a linear value stays guarded and keeps the old value") {
  Rewrite rewrite(module_text("mov.u32 %r10, %r1;\nsetp.lt.u32 %p1, %r3, %r1;\nld.global.u32 %r10, [%rd2];\n"
                              "mad.lo.s32 %r11, %r4, %r5, %r3;\nmul.lo.s32 %r12, %r11, 12;\n"
                              "mov.u32 %r13, 5;\n@%p1 add.s32 %r13, %r12, 7;\nst.global.u32 [%rd1], %r13;\n"),
                  "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string body = checked_body(rewrite);
  INFO(body);
  CHECK(occurrences(body, "@%p1 r2d2.mov.b32") == 1);
  CHECK(occurrences(body, "mad.lo") == 0);
  CHECK(occurrences(body, "mul.lo") == 0);
  CHECK(occurrences(body, ", 5;") == 1);
}

TEST_CASE("Deleted is what only addresses used; never what has another use, an effect, or a guard that matters") {
  // mul.wide: also stored. add.cc: sets the carry that addc reads. The volatile load has an effect. The atomic's result
  // is an address's part, but memory changes. The guarded add is read where the guard does not hold, too.
  Rewrite rewrite(
      module_text(
          "mul.wide.u32 %rd3, %r3, 8;\nadd.s64 %rd4, %rd1, %rd3;\n"
          "add.cc.u32 %r10, %r3, 1;\naddc.u32 %r11, %r4, 0;\n"
          "ld.volatile.global.u32 %r12, [%rd4];\n"
          "atom.global.add.u32 %r13, [%rd4+4], 1;\n"
          "mul.wide.u32 %rd5, %r3, 24;\nadd.s64 %rd6, %rd2, %rd5;\n"
          "setp.lt.u32 %p1, %r3, %r1;\nmov.u64 %rd7, %rd2;\n@%p1 add.s64 %rd7, %rd2, %rd3;\n"
          "st.global.u32 [%rd6+4], %r1;\nst.global.u64 [%rd7], %rd3;\nst.global.v2.u32 [%rd4], {%r10, %r11};\n"),
      "k", OutputForm::hardware);
  REQUIRE(rewrite.changed());
  std::string body = checked_body(rewrite);
  INFO(body);
  CHECK(occurrences(body, "add.cc.u32") == 1);
  CHECK(occurrences(body, "addc.u32") == 1);
  CHECK(occurrences(body, "ld.volatile.global.u32") == 1);
  CHECK(occurrences(body, "atom.global.add.u32") == 1);
  CHECK(occurrences(body, "add.s64 \t%rd4") == 0); // only addresses used it
  CHECK(occurrences(body, "add.s64 \t%rd6") == 0);
  CHECK(occurrences(body, "@%p1 add.s64 \t%rd7") + occurrences(body, "@%p1 r2d2.mov.b64 \t%rd") == 1);
  // Its value is stored, so it is computed or moved.
  CHECK(occurrences(body, "mul.wide.u32 \t%rd3") + occurrences(body, "r2d2.mov.b64 \t%rd3") == 1);
}

TEST_CASE("More than 16 forms with loops and several paths: 16 are kept, and the rest still works") {
  std::string body = "setp.lt.u32 %p1, %r3, %r1;\nadd.s32 %r11, %r3, -16;\nselp.b32 %r10, %r3, %r11, %p1;\n" +
                     three_accesses + "mov.u32 %r30, 0;\n";
  // Strides 12, 24, ... in a loop, with two different steps, and outside of it.
  std::string loop, outside;
  for (int i = 0; i < 22; ++i) {
    std::string address = "%rd" + std::to_string(40 + i), stride = std::to_string(12 * (i + 1));
    (i < 14 ? body : outside) += "mul.wide.u32 %rd30, %r3, " + stride + ";\nadd.s64 " + address + ", %rd1, %rd30;\n";
    std::string access = "ld.global.u32 %r31, [" + address + "];\nst.global.u32 [%rd2], %r31;\n";
    if (i < 14)
      loop += access + "add.s64 " + address + ", " + address + ", " + (i % 2 ? "8" : "16") + ";\n";
    else
      outside += access;
  }
  body += "L:\n" + loop + "add.s32 %r30, %r30, 1;\nsetp.lt.s32 %p2, %r30, 3;\n@%p2 bra L;\n" + outside;
  for (const char* limit : {"16", "5", "1", "0"}) {
    CAPTURE(limit);
    transforms::PassOptions options;
    options.set("limit", limit);
    Rewrite rewrite(module_text(body), "k", OutputForm::hardware, {}, options);
    CHECK(rewrite.statistic("linear-registers") <= std::stoi(limit));
    if (std::stoi(limit) == 0) {
      CHECK_FALSE(rewrite.changed());
      continue;
    }
    INFO(rewrite.file());
    CHECK(rewrite.statistic("linear-registers") == std::stoi(limit));
    CHECK(rewrite.statistic("dropped-forms") > 0);
    CHECK(rewrite.remarks_with("dropped {") > 0);
    // Those in the loop are worth ten times the others: with 16, all 14 are kept.
    if (std::stoi(limit) == 16) CHECK(rewrite.statistic("increments") == 2);
    checked_body(rewrite);
  }
}

} // namespace ptxrewrite::tests::r2d2_paths_test
