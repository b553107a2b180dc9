// Loops that the assembler unrolls: how many instructions its copies add to the code. Only for functions in SSA form.
// Private to ir/machine.
#pragma once

#include "ir/machine/lowering_rules.h"

namespace ptxrewrite::ir {

struct Unrolling {
  uint32_t instructions = 0; // of the machine, that copies add
  uint32_t copies = 1;       // that stand one after the other
};
// Nothing is added if the block is no loop by itself, is kept rolled by a pragma, or is not counted.
Unrolling unrolling_of(const LoweringContext& context, BlockId block);

} // namespace ptxrewrite::ir
