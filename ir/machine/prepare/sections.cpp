#include "ir/machine/prepare/sections.h"

#include <algorithm>

namespace ptxrewrite::ir {

std::vector<bool> instructions_in_sections(const Function& function) {
  if (std::ranges::none_of(function.instructions, [](const Instruction& instruction) {
        return instruction.kind == InstructionKind::section_begin;
      }))
    return {};
  std::vector<bool> in_section(function.instructions.size());
  bool inside = false;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const InstructionKind kind = function.instructions[id].kind;
      if (kind == InstructionKind::section_begin) inside = true;
      if (kind == InstructionKind::section_end) inside = false;
      in_section[id.index()] = inside;
    }
  return in_section;
}

} // namespace ptxrewrite::ir
