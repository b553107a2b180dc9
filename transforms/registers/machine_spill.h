// Estimates the spills of a function that needs more registers than instructions can name. Only for estimates; the pass
// `spill` rewrites texts.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/select/lowering.h"

#include <cstdint>
#include <map>

namespace ptxrewrite::transforms {

// Instructions added at one instruction of the text.
struct SpillPlace {
  uint16_t stores = 0, loads = 0;
  uint16_t recomputed = 0; // values that are recomputed instead
};

struct MachineSpill {
  std::map<ir::InstructionId, SpillPlace> places;
  uint32_t registers = 0, predicates = 0; // after spilling, by the estimate of registers.h
  uint32_t stores = 0, loads = 0;
  uint32_t beyond = 0; // registers above the limit if not enough values can be spilled
};

// The function must be in SSA form. Spills a copy of it until the estimate of registers.h fits into most_registers() of
// the target, or nothing more can be spilled. If no spill is needed, only the register counts are set.
MachineSpill machine_spill(const ir::Function& function, uint32_t compute_capability);

// Adds the cost of the spill instructions to that of the instructions they are placed at.
void add_spill(ir::Lowering& lowering, const MachineSpill& spill);

} // namespace ptxrewrite::transforms
