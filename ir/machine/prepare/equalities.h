// Constants implied by branches: in the block where `x != c` is known to be false, x is c.
#pragma once

#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"

namespace ptxrewrite::ir {

// Is there a reader for use_equalities() to change? Most functions have none.
bool has_equalities(const Function& function, const ControlFlow& flow, const DominatorTree& dominators);
// Where `setp.ne x, literal` of 32 bits is false, x equals the literal, and readers of x there read the literal, as
// ptxas does (13.0; not for setp.eq, ranges and 64 bits). SSA form. Existing values, blocks and instructions keep their
// ids; new ones follow. Control flow stays as it is.
void use_equalities(Function& function, const ControlFlow& flow, const DominatorTree& dominators);

} // namespace ptxrewrite::ir
