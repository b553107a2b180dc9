// Identifies instructions in sections of a hardware form: the proposed machine executes them as written, so that no
// rule may fuse or fold them.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// By InstructionId; includes the marker that begins a section but not the one that ends it. Empty if the function has
// no section.
std::vector<bool> instructions_in_sections(const Function& function);

// False for instructions that are newer than the marks.
inline bool is_marked(const std::vector<bool>& marks, InstructionId id) {
  return id.index() < marks.size() && marks[id.index()];
}

} // namespace ptxrewrite::ir
