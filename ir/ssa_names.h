// Register names and declarations behind SSA form. Private to ir/ssa*.cpp.
#pragma once

#include "ir/function.h"

namespace ptxrewrite::ir {

// Gives every register that the function still mentions a name of its own, its hint if that is free, and declares them
// at the head of the entry block.
void name_and_declare_registers(Function& function);

} // namespace ptxrewrite::ir
