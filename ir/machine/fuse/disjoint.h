// Operands whose set bits cannot overlap: `or` equals `add` there, and assemblers fuse it like one. Private to
// ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// True for a 32-bit `or` whose operands have no set bit in common, as far as their definitions show.
bool is_sum_by_or(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
