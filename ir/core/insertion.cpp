#include "ir/core/insertion.h"

namespace ptxrewrite::ir {

static Builder builder_in(Function& function, InstructionId position, BlockId block) {
  Builder builder(function);
  position ? builder.before(position) : builder.at_end(block);
  return builder;
}

InstructionId code_start(const Function& function) {
  for (InstructionId id : function.instructions_in(function.entry())) {
    const InstructionKind kind = function.instructions[id].kind;
    if (kind != InstructionKind::declare_variable && kind != InstructionKind::prototype) return id;
  }
  return {};
}

Builder builder_at_code_start(Function& function) {
  return builder_in(function, code_start(function), function.entry());
}

Builder builder_at_start(Function& function, BlockId block) {
  return builder_in(function, function.blocks[block].first, block);
}

} // namespace ptxrewrite::ir
