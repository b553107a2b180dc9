// Liveness of instructions: those that no instruction with an effect depends on are dropped by assemblers. Private to
// ir/machine.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/machine/prepare/value_flow.h"

#include <vector>

namespace ptxrewrite::ir {

// By InstructionId; either state of a function. `definitions`: of this function.
std::vector<bool> needed_instructions(const Function& function, const ControlFlow& flow,
                                      const ValueDefinitions& definitions);

} // namespace ptxrewrite::ir
