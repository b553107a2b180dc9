// Cost of the copy that is needed when a value stays live past the edge on which it is passed to a block parameter.
// Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// At the branches: a register more where the value is read behind the edge, too, or becomes two parameters.
void weigh_edge_copies(LoweringContext& context);

} // namespace ptxrewrite::ir
