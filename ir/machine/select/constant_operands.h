// Cost of constant operands (literals, kernel parameters, the launch's shape): most operand slots can name a constant;
// a move into a register is counted where a reader cannot. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// May one of its operands be no register? Instructions that compute have one place for such an operand.
bool has_constant_operand(const Form& form);

// Can the reader name the value, which no register holds so far?
bool reads_without_register(const LoweringContext& context, InstructionId reader, ValueId value, ValueSource source);

// At their definitions: values that are no registers where all readers can name them.
void weigh_constants(LoweringContext& context);
// At their readers: literals that have to be in registers.
void weigh_literals(LoweringContext& context);

} // namespace ptxrewrite::ir
