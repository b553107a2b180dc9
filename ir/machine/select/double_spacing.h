// Instructions of double precision on GPUs with few units for it: ptxas 13.0 puts no-operations between them. Private
// to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <map>

namespace ptxrewrite::ir {

// Adds no-operations to the instructions of double precision that they precede, inside expansions too; `idle` receives
// their numbers. Returns the number of those in the subroutines that the kernel appends.
uint32_t weigh_double_spacing(LoweringContext& context, std::map<InstructionId, uint16_t>& idle);

} // namespace ptxrewrite::ir
