// Addresses that are a constant plus a per-lane 64-bit value. On machines whose loads and stores take both operands
// (Turing: [R.64+UR]), the constant is loaded into a uniform register and no addition is emitted. Atomic operations have
// no such operand form, and a sum that is fused with its product or shift (IMAD.WIDE, LEA) is computed as before.
// Private to ir/machine.
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
