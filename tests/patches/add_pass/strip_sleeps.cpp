// strip-sleeps: removes nanosleep. Sleeping only gives other threads time; results do not depend on it.
#include "ir/core/function.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

static Change run(ir::Function& function, PassContext& context) {
  Change change = Change::unchanged;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId instruction : function.instructions_in(block))
      if (function.is_opcode(instruction, ir::Opcode::nanosleep)) {
        function.remove(instruction);
        ++context.statistics["strip-sleeps.removed"];
        change = Change::changed;
      }
  return change;
}

static const RegisterPass registration({"strip-sleeps", "remove nanosleep instructions", run});

} // namespace ptxrewrite::transforms
