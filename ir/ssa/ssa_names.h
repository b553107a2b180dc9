// Register names and declarations behind SSA form. Private to ir/ssa*.cpp.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Renames registers that met a second one of the same name when scopes went. Before SSA form, so that all values of a
// register have its name, and registers of different scopes keep apart.
void make_register_names_unique(Function& function);

// Gives every register that the function still mentions a name of its own, its hint if that is free, and declares them
// at the head of the entry block.
void name_and_declare_registers(Function& function);

} // namespace ptxrewrite::ir
