// Weights of a hardware form for the tables: the results of the sections are known when the body is weighed.
#include "evaluate/common/rewrite.h"
#include "tests/paper/weights.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::section_weights_test {

using namespace ptxrewrite;

namespace {

// The branch diverges, since it depends on the thread index. Its predicate depends on a linear register in R2D2's
// hardware form, which only the sections define. An atomic cannot be predicated instead.
constexpr const char* kernel_text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [data];
	ld.param.u32 %r1, [n];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mad.lo.s32 %r5, %r3, %r4, %r2;
	mul.wide.s32 %rd3, %r5, 4;
	add.s64 %rd4, %rd2, %rd3;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra $DONE;
	red.global.add.u32 [%rd4], 1;
$DONE:
	st.global.u32 [%rd4+4096], %r1;
	ret;
}
)";

// "opcode weight" of all instructions after the sections, in sequence.
std::string body_weights(const ir::Function& function) {
  const ir::Machine* machine = ir::find_machine("titanv");
  REQUIRE(machine);
  tests::Weights weights(*machine);
  std::string list;
  bool inside = false;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const ir::InstructionKind kind = function.instructions[id].kind;
      if (kind == ir::InstructionKind::section_begin) inside = true;
      if (kind == ir::InstructionKind::section_end) inside = false;
      if (kind != ir::InstructionKind::real || inside) continue;
      list += (list.empty() ? "" : ", ") + std::string(ir::spelling(function.form_of(id).opcode)) + " " +
              std::to_string(weights(function, id));
    }
  return list;
}

} // namespace

TEST_CASE("a branch that parts lanes weighs the same in the original and behind R2D2's sections") {
  ReadText text(kernel_text);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  // By hand, for sm_70. A parameter is an operand in constant memory, and so is ntid; only the store needs `n` in a
  // register (MOV). S2R twice, IMAD; the address is IMAD.WIDE, whose 4 has to be in a register beside the pointer in
  // constant memory (MOV); ISETP. The branch: the convergence barrier is cleared (BMOV.CLEAR) and set (BSSY), BRA, and
  // BSYNC at the reconvergence point. RED, whose literal is moved into a register (MOV), STG, EXIT.
  CHECK(body_weights(text.function()) == "ld 0, ld 1, cvta 0, mov 1, mov 1, mov 0, mad 1, mul 0, add 2, setp 1, bra 4, "
                                         "red 2, st 1, ret 1");

  Result<evaluate::Rewritten> rewritten = evaluate::rewrite(*text.module, "r2d2", transforms::OutputForm::hardware, {});
  REQUIRE(rewritten.ok());
  REQUIRE(rewritten->module);
  const ir::Function* hardware = nullptr;
  for (const auto& function : rewritten->module->functions)
    if (rewritten->module->text(function->name) == "k__r2d2") hardware = function.get();
  REQUIRE(hardware);
  // The thread's index and address are linear registers, `n` is a coefficient; all else is unchanged.
  CHECK(body_weights(*hardware) == "r2d2.mov 0, r2d2.mov 0, setp 1, bra 4, red 2, st 1, ret 1");
}

} // namespace ptxrewrite::tests::section_weights_test
