// Loads whose bits stand in a constant bank at a place that the text says: before 9.0 the machine instruction that
// reads the value names that place instead. Private to ir/machine.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// A kernel's parameter, or a .const variable at a fixed offset.
bool reads_constant_bank(const Function& function, InstructionId id);

} // namespace ptxrewrite::ir
