// Loads of neighbouring words of shared memory, which the assembler joins: global memory it leaves as the PTX has it.
// Private to ir/machine.
#pragma once

#include "ir/machine/lowering_rules.h"

namespace ptxrewrite::ir {

// Weighs all but one of each joined group as nothing.
void join_shared_loads(LoweringContext& context);

} // namespace ptxrewrite::ir
