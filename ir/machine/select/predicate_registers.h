// Warps have seven predicates. Of more that are live at once, ptxas keeps some as bits of general registers: it moves
// them there where they are computed and tests them where they are read. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Adds these moves and tests to the instructions that compute and read such predicates. Only in SSA form.
void weigh_moved_predicates(LoweringContext& context);

} // namespace ptxrewrite::ir
