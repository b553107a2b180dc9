// Fusions that no row of fuse.def can express: they remember computed values (sums, products), follow addresses through
// several sums, or count the inputs of a whole tree. Rows name them and their generations. A function returns true if
// the instruction is absorbed. Private to ir/machine.
#pragma once

#include "ir/machine/fuse/constant_operands.h"
#include "ir/machine/fuse/wide_arithmetic.h"
#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

bool equal_sum(LoweringContext& context, InstructionId id);
bool shift_add(LoweringContext& context, InstructionId id);
bool select_of_changed(LoweringContext& context, InstructionId id);
bool three_input_add(LoweringContext& context, InstructionId id);
bool three_input_logic(LoweringContext& context, InstructionId id);
bool complement(LoweringContext& context, InstructionId id);
bool integer_multiply_add(LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
