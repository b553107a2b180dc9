// Cost of 64-bit sums, products and shifts of 32-bit operands: what their two words take together. Fusion rules of the
// kind of lowering_rules.h.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

bool wide_multiply_add(LoweringContext& context, InstructionId id);
bool wide_product_and_sum(LoweringContext& context, InstructionId id);
bool scaled_index(LoweringContext& context, InstructionId id);
bool wide_shift_add(LoweringContext& context, InstructionId id);
bool extended_shift_add(LoweringContext& context, InstructionId id);
bool long_multiply_add(LoweringContext& context, InstructionId id);
bool sign_test(LoweringContext& context, InstructionId id);
bool extension(LoweringContext& context, InstructionId id);
bool extension_by_shift(LoweringContext& context, InstructionId id);

// Signs of the sum's operands that an instruction which does more than the sum does not make.
uint16_t signs_in_registers(const LoweringContext& context, InstructionId sum);
// Does it make the high word of an extension that is written in two steps, shr and mov?
bool is_sign_of_pair(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
