// Which instructions serve one that has an effect: assemblers drop the others. Private to ir/machine.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"

#include <vector>

namespace ptxrewrite::ir {

// By InstructionId; either state of a function.
std::vector<bool> needed_instructions(const Function& function, const ControlFlow& flow);

} // namespace ptxrewrite::ir
