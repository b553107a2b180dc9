// Cost of predicate pressure: a warp has seven predicates. ptxas keeps further ones as bits of general registers, with
// a move where they are computed and a test where they are read. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Adds these moves and tests to the instructions that compute and read such predicates. Only in SSA form.
void weigh_moved_predicates(LoweringContext& context);

} // namespace ptxrewrite::ir
