// Names and declarations of registers before and after SSA form. Private to ir/ssa*.cpp.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Renames registers that would clash with another of the same name once scopes are removed. Called before SSA
// construction, so that values of one register have its name and registers of different scopes remain distinct.
void make_register_names_unique(Function& function);

// Gives every register that the function still uses a unique name (its hint if free) and declares them at the start of
// the entry block.
void name_and_declare_registers(Function& function);

} // namespace ptxrewrite::ir
