// Machine instructions of each PTX instruction on one machine, for any function of the loaded modules: each function is
// lowered when it is first queried.
#pragma once

#include "emulator/observe/datapath_study.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"

#include <map>

namespace ptxrewrite::evaluate {

class MachineWeights {
public:
  // `capability`: use the assembler of another machine; 0: the machine's own.
  explicit MachineWeights(const ir::Machine& machine, uint32_t capability = 0)
      : capability_(capability ? capability : machine.compute_capability) {}

  // Lowers the function in SSA form, which keeps instruction IDs, if it can be constructed. Functions must not move in
  // memory.
  const ir::Lowering& lowering(const ir::Function& function);
  uint64_t operator()(const ir::Function& function, ir::InstructionId id) {
    const ir::InstructionCost& cost = lowering(function).cost(id);
    return uint64_t(cost.weight) + cost.uniform;
  }

private:
  uint32_t capability_;
  std::map<const ir::Function*, ir::Lowering> known_;
};

// The work for the units that the scalar pipeline of composite-hpca13 also has (§3.1: it executes conversions, too).
emulator::DatapathInstruction datapath_instruction(const ir::Function& function, ir::InstructionId id,
                                                   const ir::InstructionCost& cost);

} // namespace ptxrewrite::evaluate
