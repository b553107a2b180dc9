// R2D2's legal form, candidate 1: addresses that provably differ by a constant share a register.
#include "tests/unit/paths.h"
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"

#include <filesystem>

namespace ptxrewrite::tests::r2d2_common_base_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using transforms::OutputForm;

namespace {

std::string module_text(const std::string& directives, const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n" +
         directives + "{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n" + body + "}\n";
}

ir::LaunchValues small_launch(uint32_t n) {
  ir::LaunchValues launch;
  launch.block = {8, 4, 1};
  launch.grid = {2, 1, 1};
  launch.add_parameter(0x7f0000000000, 8);
  launch.add_parameter(n, 4);
  return launch;
}

// Candidate 1 alone, with proved obligations only.
transforms::PassOptions common_base_in_place() {
  transforms::PassOptions options;
  options.set("candidates", "1");
  options.set("discharge", "proved");
  return options;
}

size_t real_instructions(const ir::Function& function) {
  size_t count = 0;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      count += function.instructions[id].kind == ir::InstructionKind::real;
  return count;
}

// tid.x + 1 widened, beside tid.x widened: 1024 threads at most, so neither wraps.
const char* const neighbours = R"(
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
add.s32 %r3, %r1, 1;
mul.wide.u32 %rd4, %r3, 4;
add.s64 %rd5, %rd1, %rd4;
st.global.u32 [%rd5], %r2;
ret;
)";

} // namespace

TEST_CASE("Neighbours whose extension provably does not wrap share the base") {
  Rewrite rewrite(module_text("", neighbours), "k", OutputForm::legal, {}, common_base_in_place());
  REQUIRE(rewrite.changed());
  std::string text = Rewrite::printed(*rewrite.after);
  INFO(text);
  CHECK(text.find("+4], ") != std::string::npos);
  CHECK(real_instructions(*rewrite.before) - real_instructions(*rewrite.after) == 3);
  CHECK(rewrite.same_traces(small_launch(3)));
  CHECK_FALSE(rewrite.rewritten->hardware_form);
  // Its obligations are in the ledger, and none is left open.
  CHECK(rewrite.obligations(transforms::Discharge::proved) == rewrite.context.ledger.size());
  CHECK(rewrite.context.ledger.size() > 0);
}

TEST_CASE("The same sum in another order is the same address") {
  Rewrite rewrite(module_text("", R"(
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %tid.y;
mul.wide.u32 %rd2, %r1, 4;
mul.wide.u32 %rd3, %r2, 400;
add.s64 %rd4, %rd1, %rd2;
add.s64 %rd5, %rd4, %rd3;
ld.global.u32 %r3, [%rd5];
add.s64 %rd6, %rd3, %rd2;
add.s64 %rd7, %rd6, %rd1;
st.global.u32 [%rd7+8], %r3;
ret;
)"),
                  "k", OutputForm::legal, {}, common_base_in_place());
  REQUIRE(rewrite.changed());
  CHECK(rewrite.same_traces(small_launch(3)));
  CHECK(real_instructions(*rewrite.before) - real_instructions(*rewrite.after) == 2);
}

TEST_CASE("An index that may wrap is not touched: a parameter has no bound") {
  Rewrite rewrite(module_text("", R"(
ld.param.u64 %rd1, [p];
ld.param.u32 %r4, [n];
mov.u32 %r5, %tid.x;
add.s32 %r1, %r4, %r5;
mul.wide.s32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
add.s32 %r3, %r1, 1;
mul.wide.s32 %rd4, %r3, 4;
add.s64 %rd5, %rd1, %rd4;
st.global.u32 [%rd5], %r2;
ret;
)"),
                  "k", OutputForm::legal, {}, common_base_in_place());
  CHECK_FALSE(rewrite.changed());
  // The rewrite would be wrong: n = 2^31 - 1 wraps in thread 0.
  CHECK(rewrite.same_traces(small_launch(0x7fffffff)));
}

TEST_CASE("No instruction saved, no base at hand, or an offset too large: left alone to the byte") {
  // The second address is stored as data too, so its computation stays.
  Rewrite still_needed(
      module_text(
          "",
          std::string(neighbours).replace(std::string(neighbours).find("ret"), 3, "st.global.u64 [%rd3], %rd5;\nret")),
      "k", OutputForm::legal, {}, common_base_in_place());
  CHECK_FALSE(still_needed.changed());
  // The first access is on another path.
  Rewrite other_path(module_text("", R"(
ld.param.u64 %rd1, [p];
ld.param.u32 %r9, [n];
mov.u32 %r1, %tid.x;
setp.eq.s32 %p1, %r9, 0;
@%p1 bra L;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r1;
ret;
L:
add.s32 %r3, %r1, 1;
mul.wide.u32 %rd4, %r3, 4;
add.s64 %rd5, %rd1, %rd4;
st.global.u32 [%rd5], %r1;
ret;
)"),
                     "k", OutputForm::legal, {}, common_base_in_place());
  CHECK_FALSE(other_path.changed());
  std::string far = neighbours;
  far.replace(far.find("%r1, 1;"), 7, "%r1, 9000000;");
  CHECK_FALSE(Rewrite(module_text("", far), "k", OutputForm::legal, {}, common_base_in_place()).changed());
}

TEST_CASE("Samples: the legal form is found or refused without a difference in the text") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("samples"))) {
    if (entry.path().extension() != ".ptx") continue;
    std::string text = file_text(entry.path().string());
    std::unique_ptr<ir::Module> module = read_text(text);
    for (const auto& function : module->functions) {
      if (!function->has_body) continue;
      std::string name(module->text(function->name));
      CAPTURE(name);
      Rewrite rewrite(text, name, OutputForm::legal, {}, common_base_in_place());
      if (rewrite.changed()) CHECK(real_instructions(*rewrite.after) < real_instructions(*rewrite.before));
    }
  }
}

} // namespace ptxrewrite::tests::r2d2_common_base_test
