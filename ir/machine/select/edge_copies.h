// Cost of the copy that is needed when a value stays live past the edge on which it is passed to a block parameter.
// Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Adds a register move to the branch if the value is also read after the edge, or is passed to two parameters.
void weigh_edge_copies(LoweringContext& context);

} // namespace ptxrewrite::ir
