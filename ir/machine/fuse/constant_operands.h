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

// Is the instruction a sum of 64 bits with a .const variable's place, read as an address of constant loads alone? They
// add the place themselves (c[0x3][R + place]), and take the rest in 32 bits.
bool is_constant_place(const LoweringContext& context, InstructionId id);

// Takes such a sum away: see coded_fusions.h.
bool constant_place(LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
