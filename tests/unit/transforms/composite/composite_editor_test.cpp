// Facts about bits that `composite`'s editor stores, before and after it replaces an instruction.
#include "transforms/composite/composite_editor.h"

#include "grammar/reader.h"
#include "ir/ssa/ssa.h"

#include <doctest/doctest.h>

#include <memory>

namespace ptxrewrite::tests::composite_editor_test {

using transforms::legal::composite::Editor;

namespace {

constexpr const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n) {
.reg .b32 %r<6>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
xor.b32 %r2, %r1, 5;
add.s32 %r3, %r2, 1;
st.global.u32 [%rd1], %r3;
ret;
}
)";

} // namespace

TEST_CASE("known zeros are computed again after an instruction is replaced") {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  ir::Function& function = *module->functions.front();
  REQUIRE(ir::construct_ssa(function));
  ir::InstructionId logic, sum;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.is_opcode(id, ir::Opcode::xor_)) logic = id;
      if (function.is_opcode(id, ir::Opcode::add)) sum = id;
    }
  REQUIRE(logic);
  REQUIRE(sum);
  Editor editor(function);
  const ir::Operand of_logic = ir::Operand::value(editor.result(logic)),
                    of_sum = ir::Operand::value(editor.result(sum)), parameter = editor.sources(logic)[0];
  CHECK(editor.known_zeros(of_logic) == 0);
  CHECK(editor.known_zeros(of_sum) == 0);
  const ir::Operand masked[] = {parameter, ir::Operand::integer(15)};
  editor.begin(logic);
  editor.finish("and.b32", masked);
  CHECK(editor.known_zeros(of_logic) == ~uint32_t(15));
  CHECK(editor.known_zeros(of_sum) == ~uint32_t(31)); // 15 + 1 has five bits
}

} // namespace ptxrewrite::tests::composite_editor_test
