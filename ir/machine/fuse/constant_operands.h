// Cost of constants (literals, kernel parameters, the launch's shape) at their definitions: most operand slots can name
// one (operand_slots.h); a move into a register is counted where a reader cannot. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// True if the value, which a literal defines (ValueSource::literal), is 0.
bool literal_is_zero(const LoweringContext& context, ValueId value);

// True if the reader can name the value, which is not in a register so far, as an operand.
bool reads_without_register(const LoweringContext& context, InstructionId reader, ValueId value, ValueSource source);

// At the definitions: a value that is not in a register is free if all readers can name it.
void weigh_constants(LoweringContext& context);

// True for a 64-bit sum with the address of a .const variable that is read only as the address of constant loads. These
// add the variable's offset (c[0x3][R + place]) and need only the other summand, in 32 bits.
bool is_constant_place(const LoweringContext& context, InstructionId id);

// Absorbs such a sum: see coded_fusions.h.
bool constant_place(LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
