// census: marks each store so that a machine counts the threads that reach it (`//@ census`). The marks
// are the whole hardware form.
#include "ir/core/builder.h"
#include "ir/core/function.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

static Change run(ir::Function& function, PassContext& context) {
  Change change = Change::unchanged;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId instruction : function.instructions_in(block)) {
      if (!function.is_opcode(instruction, ir::Opcode::st)) continue;
      ir::Operand mark;
      mark.kind = ir::OperandKind::text;
      mark.id = function.module().intern("@ census").index();
      ir::Builder(function).before(instruction).emit_marker(ir::InstructionKind::annotation, {mark});
      ++context.statistics["census.marks"];
      change = Change::changed;
    }
  return change;
}

static const RegisterPass registration({"census", "have a machine count the threads that come to stores", run});

} // namespace ptxrewrite::transforms
