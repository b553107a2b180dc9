// Instruction size as the unroller sees it: the estimate before expansion and fusion, by which ptxas decides whether a
// loop is worth unrolling. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// For an instruction that has a form. Accesses count one, and one more for the sum where their address is no register;
// what is free, as moves are, none.
uint32_t size_in_loop(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
