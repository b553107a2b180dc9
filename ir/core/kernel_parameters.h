// What a kernel is launched with. Loads of space .param read other things too: what a call has returned, and in device
// functions what a caller passed.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

bool is_own_parameter(const Function& function, SymbolRef symbol);
// Does the instruction read a parameter of the kernel, so that all threads find the same there at any time, if they ask
// for the same address?
bool loads_kernel_parameter(const Function& function, InstructionId id);

} // namespace ptxrewrite::ir
