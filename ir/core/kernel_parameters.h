// Parameters of a kernel launch. Not every load of space .param reads one: others read the results of a call or, in
// device functions, the caller's arguments.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

bool is_own_parameter(const Function& function, SymbolRef symbol);
// True if the instruction reads a parameter of the kernel, so that all threads that load from the same address get the
// same value at any time.
bool loads_kernel_parameter(const Function& function, InstructionId id);

} // namespace ptxrewrite::ir
