// Constant operands (literals, parameters and other words of constant banks) against the slots of machine instructions,
// the column `slots` of isa.def: what a slot does not take is moved into a register first. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <span>

namespace ptxrewrite::ir {

// True if the instruction can have an operand that is not a register.
bool has_constant_slot(const LoweringContext& context, const Form& form);

// True if the reader takes the value, which is not in a register so far, as an operand.
bool slot_takes(const LoweringContext& context, InstructionId reader, ValueId value, ValueSource source);

// Number of operands that need a slot for a constant; zero does not, as it has its own register.
size_t constants_among(const LoweringContext& context, std::span<const Operand> operands);

// Adds the moves of operands that have no slot to their readers, once it is known which values are in registers.
void weigh_operand_slots(LoweringContext& context);

} // namespace ptxrewrite::ir
