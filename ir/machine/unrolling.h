// Loops that the assembler unrolls: how many instructions its copies add to the code. Only for functions in SSA form.
// Private to ir/machine.
#pragma once

#include "ir/machine/lowering_rules.h"

namespace ptxrewrite::ir {

// Machine instructions that the copies of the loop around `block` add; 0 if it is no loop of one block, is kept rolled
// by a pragma, or is not counted.
uint32_t unrolled_instructions(const LoweringContext& context, BlockId block);

} // namespace ptxrewrite::ir
