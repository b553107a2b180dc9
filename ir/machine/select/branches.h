// Cost of branches: short branches become predicated code, and divergent branches need reconvergence instructions.
// Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// `together`: tells which branches keep lanes converged. Sets `predicated` of blocks.
void weigh_branches(LoweringContext& context, const PostDominatorTree& post_dominators, const UniformValues& together);

} // namespace ptxrewrite::ir
