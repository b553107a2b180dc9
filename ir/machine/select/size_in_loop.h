// Instruction size as the unroller sees it: the estimate before expansion and fusion, by which ptxas decides whether a
// loop is worth unrolling. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// For real instructions only. Accesses count 1, plus 1 for the sum if their address is not a register; free
// instructions such as moves count 0.
uint32_t size_in_loop(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
