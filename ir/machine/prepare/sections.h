// Which instructions belong to sections of a hardware form: the proposed machine executes them as written, so that no
// rule may fuse or fold them.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// By InstructionId; the marker in front of a section counts, the one behind it does not.
std::vector<bool> instructions_in_sections(const Function& function);

} // namespace ptxrewrite::ir
