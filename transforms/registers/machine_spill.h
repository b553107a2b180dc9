// What an assembler makes of a function that needs more registers than instructions can name: values wait in local
// memory. Only for estimates; the pass `spill` rewrites texts.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/select/lowering.h"

#include <cstdint>
#include <map>

namespace ptxrewrite::transforms {

// Instructions that an instruction of the text has beside it.
struct SpillPlace {
  uint16_t stores = 0, loads = 0;
  uint16_t recomputed = 0; // values that are computed again instead
};

struct MachineSpill {
  std::map<ir::InstructionId, SpillPlace> places;
  uint32_t registers = 0, predicates = 0; // with them, as registers.h estimates
  uint32_t stores = 0, loads = 0;
  uint32_t beyond = 0; // registers that are still wanting where not all can be spilled
};

// SSA form. Spills a copy of the function until the estimate of registers.h fits into most_registers() of the target,
// as far as that can be. Nothing in the result but registers where it fits as it is.
MachineSpill machine_spill(const ir::Function& function, uint32_t compute_capability);

// Adds its instructions to the costs of those that they stand beside.
void add_spill(ir::Lowering& lowering, const MachineSpill& spill);

} // namespace ptxrewrite::transforms
