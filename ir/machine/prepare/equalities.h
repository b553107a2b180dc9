// Constants implied by branches: in the block where `x != c` is known to be false, x is c.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Where `setp.ne x, literal` of 32 bits is false, x equals the literal, and readers of x there read the literal, as
// ptxas does (13.0; not for setp.eq, ranges and 64 bits). SSA form. Existing values, blocks and instructions keep their
// ids; new ones follow. Returns true if anything changed.
bool use_equalities(Function& function);
// False if use_equalities() would certainly change nothing, from one look at the instructions.
bool may_have_equalities(const Function& function);

} // namespace ptxrewrite::ir
