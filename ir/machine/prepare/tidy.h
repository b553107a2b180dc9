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
  Function function;           // with the ids of the original; removed instructions are in no block
  std::vector<bool> moves;     // by InstructionId: accesses of promoted local variables, without an instruction
  bool crosses_blocks = false; // a value from another block is reused
};

// Returns nullopt if nothing changes. `across_blocks`: values computed in dominating blocks are reused, too.
std::optional<Tidied> tidied(const Function& function, uint32_t compute_capability, bool across_blocks = true);

} // namespace ptxrewrite::ir
