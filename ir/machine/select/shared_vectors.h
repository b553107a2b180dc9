// Merging of neighbouring loads and stores in shared memory: one access of each merged group keeps its cost. Accesses
// of global memory are not merged by the assembler. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Sets the cost of all but one access of a merged group to 0; for 16-bit values the extraction of halves remains.
void join_shared_accesses(LoweringContext& context);

// Vectors of 8- and 16-bit elements are accessed in words: adds the cost of extracting and assembling elements.
void weigh_narrow_vectors(LoweringContext& context);

} // namespace ptxrewrite::ir
