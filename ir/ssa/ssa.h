// Construction of SSA form and conversion back to registers.
#pragma once

#include "ir/core/function.h"
#include "support/result.h"

namespace ptxrewrite::ir {

// Converts a function as read to SSA form with pruned block parameters. Guards stay on their instructions; the old
// value of a guarded definition, which remains in lanes whose guard is false, becomes an explicit operand
// (instruction.h). Scopes and register declarations are dropped, local variables and labels get unique names, and
// unreachable blocks are left out of the layout. Converts a kernel's affine stream, too. If the body contains something
// that SSA form cannot represent, returns an error with its position and leaves the function unchanged; such a function
// passes through every transform untouched.
Status construct_ssa(Function& function);

// Converts back to registers. Coalesces so that construct followed by destruct changes nothing visible to ptxas: values
// of one original register share one again unless they interfere. Declares registers, named after the values' hints,
// and inserts copies only where needed (parallel copies are sequentialised; critical edges are split).
void destruct_ssa(Function& function);

} // namespace ptxrewrite::ir
