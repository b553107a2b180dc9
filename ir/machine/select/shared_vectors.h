// Merging of neighbouring loads and stores in shared memory: one access of each merged group keeps its cost. Accesses
// of global memory are not merged by the assembler. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Weighs all but one of each joined group as nothing, and of 16-bit values as many as taking them apart leaves.
void join_shared_accesses(LoweringContext& context);

// Elements of 8 and 16 bits come and go in words: adds what takes them out and puts them together.
void weigh_narrow_vectors(LoweringContext& context);

} // namespace ptxrewrite::ir
