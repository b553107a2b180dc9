// 64-bit sums and products of 32-bit operands: functions that rows of fuse.def call, and fusions that no row can
// express. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// True for mad.wide of 32-bit factors.
bool is_wide_multiply_add(const LoweringContext& context, InstructionId id);

// See coded_fusions.h.
bool wide_product_and_sum(LoweringContext& context, InstructionId id);

// True for a sign-extended 32-bit value whose sign word is not in a register so far.
bool is_absorbed_sign(const LoweringContext& context, const Operand* operand);
// Number of sign words of the sum's operands that a fused instruction cannot compute itself.
uint16_t signs_in_registers(const LoweringContext& context, InstructionId sum);
// True if it computes the high word of an extension that is written as shr and mov.
bool is_sign_of_pair(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
