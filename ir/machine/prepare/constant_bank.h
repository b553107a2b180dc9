// Loads from a constant bank at an address that the text determines: before 9.0 the machine instruction that reads the
// value names the address as an operand instead. Private to ir/machine.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// True for loads of a kernel's parameter, or of a .const variable at a fixed offset.
bool reads_constant_bank(const Function& function, InstructionId id);

} // namespace ptxrewrite::ir
