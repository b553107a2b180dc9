// Sums, products and shifts of 64 bits whose operands have 32: what the two words take together. Rules of
// lowering_rules.h, each looks at one instruction and says whether its readers do its work.
#pragma once

#include "ir/machine/lowering_context.h"

namespace ptxrewrite::ir {

bool wide_multiply_add(LoweringContext& context, InstructionId id);
bool wide_product_and_sum(LoweringContext& context, InstructionId id);
bool wide_shift_add(LoweringContext& context, InstructionId id);
bool extension(LoweringContext& context, InstructionId id);
bool extension_by_shift(LoweringContext& context, InstructionId id);

// Does it make the high word of an extension that is written in two steps, shr and mov?
bool is_sign_of_pair(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
