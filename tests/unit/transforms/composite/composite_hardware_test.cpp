// The hardware form of `composite` on texts: its guarantees beyond the goldens, which show one listing each.
#include "tests/unit/transforms/r2d2/r2d2_fixture.h"

#include "ir/edit/dead_code.h"
#include "ir/forms/composite.h"
#include "ir/machine/select/lowering.h"

namespace ptxrewrite::tests::composite_hardware_test {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

namespace {

std::string in_kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
         ".reg .b32 %r<16>; .reg .b64 %rd<8>, %base; .reg .pred %p<4>;\nld.param.u64 %base, [p];\n"
         "ld.global.u32 %r1, [%base]; ld.global.u32 %r2, [%base+4]; ld.global.u32 %r3, [%base+8];\n" +
         body + "\nret;\n}\n";
}

struct Fused {
  std::unique_ptr<ir::Module> module;
  transforms::Change change{};
  int64_t composites = 0, slot_reads = 0;
  uint32_t before = 0, after = 0; // machine instructions of FX5800
};

Fused fuse(const std::string& body) {
  Fused result;
  result.module = read_text(in_kernel(body));
  ir::Function& function = kernel(*result.module, "k");
  REQUIRE(ir::construct_ssa(function).ok());
  result.before = ir::lower(function, 13).static_instructions();
  transforms::PassContext context;
  context.form = transforms::OutputForm::hardware;
  result.change = transforms::find_pass("composite")->run(function, context);
  result.after = ir::lower(function, 13).static_instructions();
  result.composites = context.statistics["composite.fused"];
  result.slot_reads = context.statistics["composite.slot-reads"];
  CHECK(ir::verify(function).empty());
  return result;
}

} // namespace

TEST_CASE("each composite saves one instruction of FX5800") {
  Fused fused =
      fuse("xor.b32 %r4, %r1, %r2; shl.b32 %r5, %r4, 3; add.s32 %r6, %r5, %r3; shf.l.wrap.b32 %r7, %r6, %r6, 7;\n"
           "and.b32 %r8, %r7, 255; cvt.rn.f32.u32 %r9, %r8; st.global.u32 [%base], %r9;");
  CHECK(fused.composites >= 3);
  CHECK(fused.before - fused.after == fused.composites);
}

TEST_CASE("what is stored, or read in another block, is no intermediate result") {
  CHECK(fuse("xor.b32 %r4, %r1, %r2; shl.b32 %r5, %r4, 3; st.global.u32 [%base], %r5; st.global.u32 [%base+4], %r4;")
            .composites == 0);
  CHECK(fuse("xor.b32 %r4, %r1, %r2; shl.b32 %r5, %r4, 3; st.global.u32 [%base], %r5; setp.eq.u32 %p1, %r1, 0;\n"
             "@%p1 bra L; st.global.u32 [%base+4], %r4;\nL:")
            .composites == 0);
  CHECK(fuse("xor.b32 %r4, %r1, %r2; shl.b32 %r5, %r4, 3; st.global.u32 [%base], %r5;").composites == 1);
}

TEST_CASE("a function without pairs is left alone") {
  const std::string body = "xor.b32 %r4, %r1, %r2; st.global.u32 [%base], %r4;";
  Fused fused = fuse(body);
  CHECK(fused.change == transforms::Change::unchanged);
  CHECK_FALSE(fused.module->hardware_form);
}

TEST_CASE("memory operands: two kernel parameters are one too many") {
  auto with_parameters = [](const std::string& body) {
    std::unique_ptr<ir::Module> module =
        read_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 a, .param .u32 b)\n{\n"
                  ".reg .b32 %r<16>; .reg .b64 %rd<3>;\nld.param.u32 %r1, [a]; ld.param.u32 %r2, [b];\n"
                  "mov.u32 %r3, %tid.x; mov.u64 %rd1, 0;\n" +
                  body + "st.global.u32 [%rd1], %r5; ret;\n}\n");
    ir::Function& function = kernel(*module, "k");
    REQUIRE(ir::construct_ssa(function).ok());
    transforms::PassContext context;
    context.form = transforms::OutputForm::hardware;
    (void)transforms::find_pass("composite")->run(function, context);
    return context.statistics["composite.fused"];
  };
  CHECK(with_parameters("xor.b32 %r4, %r3, %r1; add.s32 %r5, %r4, %r3;\n") == 1);
  CHECK(with_parameters("xor.b32 %r4, %r3, %r1; add.s32 %r5, %r4, %r2;\n") == 0);
}

TEST_CASE("one literal that is no number of bits") {
  CHECK(fuse("and.b32 %r4, %r1, 255; shl.b32 %r5, %r4, 3; st.global.u32 [%base], %r5;").composites == 1);
  CHECK(fuse("and.b32 %r4, %r1, 255; add.s32 %r5, %r4, 12345; st.global.u32 [%base], %r5;").composites == 0);
}

TEST_CASE("the verifier watches the slot") {
  Fused fused = fuse("min.s32 %r9, %r1, %r2; xor.b32 %r4, %r9, %r2; shl.b32 %r5, %r4, 3; max.u32 %r6, %r4, %r5;\n"
                     "st.global.u32 [%base], %r6;");
  REQUIRE(fused.composites == 1);
  CHECK(fused.slot_reads == 1);
  // Without the composite, the slot is empty.
  ir::Function& function = kernel(*fused.module, "k");
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real || !ir::is_composite(function.form_of(id)))
        continue;
      ir::Instruction plain = function.instructions[id];
      std::vector<ir::Operand> operands(function.operands_of(id).begin(), function.operands_of(id).end());
      operands.pop_back();
      plain.form = ir::known_form("xor.b32");
      function.insert_before(id, function.add_instruction(plain, operands));
      function.remove(id);
    }
  std::vector<ir::VerifierFinding> findings = ir::verify(function);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "crf");
  // Dead code removal keeps results that are read from the slot.
  Fused again = fuse("xor.b32 %r4, %r1, %r2; shl.b32 %r5, %r4, 3; max.u32 %r6, %r4, %r5; st.global.u32 [%base], %r6;");
  ir::remove_dead_code(kernel(*again.module, "k"));
  CHECK(ir::verify(kernel(*again.module, "k")).empty());
}

} // namespace ptxrewrite::tests::composite_hardware_test
