// Operands whose set bits cannot overlap: `or` equals `add` there, and assemblers fuse it like one. Private to
// ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// An or of 32 bits whose operands have no bit in common, as far as their definitions tell.
bool is_sum_by_or(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
