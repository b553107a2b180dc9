// Clean-up before instruction selection: promotes local variables to registers and removes common subexpressions, as
// assemblers do. SSA form only. Private to ir/machine: lower() works on the result.
//
// Sections of a hardware form are not touched: the proposed machine executes them as written.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/machine/prepare/value_flow.h"

#include <optional>
#include <vector>

namespace ptxrewrite::ir {

// What tidying finds; the function is as it was until apply() is called.
struct Tidied {
  std::vector<bool> moves;     // by InstructionId: accesses of promoted local variables, without an instruction
  std::vector<bool> gone;      // by InstructionId: removed
  std::vector<ValueId> equal;  // by ValueId: an equal value defined earlier, or invalid
  bool crosses_blocks = false; // a value from another block is reused

  // Removes instructions and lets readers read the equal values. Ids stay valid.
  void apply(Function& function) const;
};

// Returns nullopt if nothing changes. `definitions`: of the function. `across_blocks`: values computed in dominating
// blocks are reused, too.
std::optional<Tidied> tidied(const Function& function, const ControlFlow& flow, const DominatorTree& dominators,
                             uint32_t compute_capability, DefinitionsBetweenSteps& definitions,
                             bool across_blocks = true);

} // namespace ptxrewrite::ir
