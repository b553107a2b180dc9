// 64-bit sums and products of 32-bit operands: what rows of fuse.def ask about them, and what no row can say. Private
// to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// See coded_fusions.h.
bool wide_product_and_sum(LoweringContext& context, InstructionId id);

// A 32-bit value with its sign in 64 bits, and no register for the sign so far.
bool is_absorbed_sign(const LoweringContext& context, const Operand* operand);
// Signs of the sum's operands that an instruction which does more than the sum does not make.
uint16_t signs_in_registers(const LoweringContext& context, InstructionId sum);
// Does it make the high word of an extension that is written in two steps, shr and mov?
bool is_sign_of_pair(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
