// A pass outside the tree, built as a shared library:
//   ptxrewrite opt kernel.ptx --load-pass libcount_sleeps.so -p count-sleeps --stats
// It links no libraries: ptxrewrite itself provides the symbols that it uses.
#include "transforms/manager/pass.h"

using namespace ptxrewrite;

static transforms::Change count_sleeps(ir::Function& function, transforms::PassContext& context) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId instruction : function.instructions_in(block))
      context.statistics["count-sleeps.sleeps"] += function.is_opcode(instruction, ir::Opcode::nanosleep);
  return transforms::Change::unchanged;
}

static const transforms::RegisterPass registration({"count-sleeps", "count nanosleep instructions", count_sleeps});
