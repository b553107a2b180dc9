// Pointers advanced by a loop: ptxas increments their two words separately and moves them into a register pair before
// the accesses. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/select/lowering.h"

namespace ptxrewrite::ir {

// For loops that are not unrolled: in copies of a loop body, pointer advances are constants in the accesses.
void weigh_split_pointers(LoweringContext& context, const Lowering& lowering);

} // namespace ptxrewrite::ir
