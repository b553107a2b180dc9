#include "ir/core/last_return.h"

#include "ir/core/builder.h"

namespace ptxrewrite::ir {

bool runs_off_the_end(const Function& function, BlockId block) {
  if (block != function.layout.back()) return false;
  const InstructionId end = function.terminator(block);
  return !end || function.instructions[end].guard;
}

void spell_last_return(Function& function) {
  const BlockId last = function.layout.back();
  if (runs_off_the_end(function, last)) Builder(function).at_end(last).emit("ret", {});
}

} // namespace ptxrewrite::ir
