// Which instructions stand in sections of a hardware form: what is written there is executed, as it is written.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// By InstructionId; the marker in front of a section counts, the one behind it does not.
std::vector<bool> instructions_in_sections(const Function& function);

} // namespace ptxrewrite::ir
