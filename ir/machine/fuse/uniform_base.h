// Addresses that are a constant plus a 64-bit value of the lanes: on machines whose accesses can name both (Turing:
// [R.64+UR]), the constant is loaded into a uniform register and the sum is not computed. Atomic operations cannot; nor
// do products and shifts use it that the sum takes over (IMAD.WIDE, LEA). Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// True for a sum that only such accesses read.
bool is_uniform_base(const LoweringContext& context, InstructionId id);

// Absorbs such a sum: see coded_fusions.h.
bool uniform_base(LoweringContext& context, InstructionId id);

// Adds the loads of the constants: one for each block whose accesses read it. To be called when the blocks that are
// predicated are known, which belong to the block before.
void weigh_uniform_bases(LoweringContext& context);

} // namespace ptxrewrite::ir
