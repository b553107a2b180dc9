// Cost of the copy that is needed when a value stays live past the edge on which it is passed to a block parameter.
// Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// Adds a register move to the branch if the value is also read after the edge, or is passed to two parameters.
// A value of the uniform datapath is moved if it is passed on to where values differ between lanes.
void weigh_edge_copies(LoweringContext& context, const UniformValues& uniform);

} // namespace ptxrewrite::ir
