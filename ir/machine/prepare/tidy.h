// Clean-up before instruction selection: promotes local variables to registers and removes common subexpressions, as
// assemblers do. SSA form only. Private to ir/machine: lower() works on the result.
//
// Sections of a hardware form are not touched: the proposed machine executes them as written.
#pragma once

#include "ir/core/function.h"

#include <optional>
#include <vector>

namespace ptxrewrite::ir {

struct Tidied {
  Function function;           // with the ids of the original; what is done away with is in no block
  std::vector<bool> moves;     // by InstructionId: accesses of local variables that are registers, nothing to execute
  bool crosses_blocks = false; // a value was computed before in another block
};

// Nothing where there is nothing to do. `across_blocks`: values of blocks that dominate a block are computed before.
std::optional<Tidied> tidied(const Function& function, uint32_t compute_capability, bool across_blocks = true);

} // namespace ptxrewrite::ir
