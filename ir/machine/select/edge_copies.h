// What it costs that a value and the block parameter that it becomes are needed at once. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// At the branches: a register more where the value is read behind the edge, too, or becomes two parameters.
void weigh_edge_copies(LoweringContext& context);

} // namespace ptxrewrite::ir
