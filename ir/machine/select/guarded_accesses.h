// Accesses of memory under a predicate: what they take beside the access itself. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// Zeros that a load under a predicate leaves in its registers, and those of 64 bits: one instruction clears two
// neighbouring registers.
void weigh_zero_pairs(LoweringContext& context);

// A load under a predicate is behind a branch, unless there are others that it can overlap with. If the last access of
// a kernel is under a predicate, the lanes without it end before.
void weigh_guarded_accesses(LoweringContext& context, const UniformValues& together);

} // namespace ptxrewrite::ir
