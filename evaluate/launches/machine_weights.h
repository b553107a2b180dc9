// Machine instructions of PTX instructions on one machine, of any function of the modules at hand: each function is
// lowered when it is first asked for.
#pragma once

#include "emulator/observe/datapath_study.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"

#include <map>

namespace ptxrewrite::evaluate {

class MachineWeights {
public:
  // `capability`: of another machine, whose assembler is taken; 0: none.
  explicit MachineWeights(const ir::Machine& machine, uint32_t capability = 0)
      : capability_(capability ? capability : machine.compute_capability) {}

  // In SSA form, which keeps the numbers of instructions, where the function has one. Functions must stay where they
  // are.
  const ir::Lowering& lowering(const ir::Function& function);
  uint64_t operator()(const ir::Function& function, ir::InstructionId id) {
    const ir::InstructionCost& cost = lowering(function).cost(id);
    return uint64_t(cost.weight) + cost.uniform;
  }

private:
  uint32_t capability_;
  std::map<const ir::Function*, ir::Lowering> known_;
};

// Work for the units that the scalar pipeline of composite-hpca13 has, too (§3.1: conversions run on them).
emulator::DatapathInstruction datapath_instruction(const ir::Function& function, ir::InstructionId id,
                                                   const ir::InstructionCost& cost);

} // namespace ptxrewrite::evaluate
