#include "evaluate/launches/machine_weights.h"

#include "ir/ssa/ssa.h"
#include "transforms/registers/machine_spill.h"

namespace ptxrewrite::evaluate {

const ir::Lowering& MachineWeights::lowering(const ir::Function& function) {
  if (auto known = known_.find(&function); known != known_.end()) return known->second;
  ir::Function copy(function);
  if (!copy.is_ssa) (void)ir::construct_ssa(copy);
  ir::Lowering& lowering = known_.emplace(&function, ir::lower(copy, capability_)).first->second;
  if (copy.is_ssa) transforms::add_spill(lowering, transforms::machine_spill(copy, capability_));
  return lowering;
}

emulator::DatapathInstruction datapath_instruction(const ir::Function& function, ir::InstructionId id,
                                                   const ir::InstructionCost& cost) {
  const uint64_t weight = uint64_t(cost.weight) + cost.uniform;
  const ir::Form& form = function.form_of(id);
  const bool integer = cost.pipe == ir::Pipe::integer || cost.pipe == ir::Pipe::uniform || cost.pipe == ir::Pipe::issue;
  const bool moves = form.opcode == ir::Opcode::cvt || form.opcode == ir::Opcode::mov;
  const bool computes = form.effects.pure();
  return {weight, computes && (integer || moves || cost.pipe == ir::Pipe::fp32), computes && integer};
}

} // namespace ptxrewrite::evaluate
