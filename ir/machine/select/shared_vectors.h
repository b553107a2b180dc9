// Loads and stores of neighbours in shared memory, which the assembler joins: global memory it leaves as the PTX has
// it. Private to ir/machine.
#pragma once

#include "ir/machine/select/lowering_rules.h"

namespace ptxrewrite::ir {

// Weighs all but one of each joined group as nothing, and of 16-bit values as many as taking them apart leaves.
void join_shared_accesses(LoweringContext& context);

} // namespace ptxrewrite::ir
