// How long the assembler thinks an instruction is where it asks whether a loop is worth copying: before it expands and
// fuses anything. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// For an instruction that has a form. Accesses count one, and one more for the sum where their address is no register;
// what is free, as moves are, none.
uint32_t size_in_loop(const LoweringContext& context, InstructionId id);

} // namespace ptxrewrite::ir
