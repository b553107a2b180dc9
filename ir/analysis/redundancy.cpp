// Marks of a function's instructions.
#include "ir/analysis/redundancy.h"

namespace ptxrewrite::ir {

std::vector<DarsieMark> marks_of(const Function& function) {
  std::vector<DarsieMark> marks(function.instructions.size());
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real)
        marks[id.index()] = written_mark(function, id).value_or(DarsieMark{});
  return marks;
}

} // namespace ptxrewrite::ir
