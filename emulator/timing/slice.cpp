#include "emulator/timing/slice.h"

#include <algorithm>

namespace ptxrewrite::timing {

ir::Machine slice_of(const ir::Machine& machine, uint32_t parts) {
  ir::Machine slice = machine;
  slice.sms = std::max(machine.sms / std::max(parts, 1u), 1u);
  // The share is that of the SMs: their number may not be divisible by `parts`.
  const double share = static_cast<double>(slice.sms) / machine.sms;
  for (ir::Figure* figure :
       {&slice.memory.l2_kib, &slice.memory.dram_gb_per_second, &slice.memory.achieved_dram_gb_per_second})
    figure->value *= share;
  slice.launch.per_block.value /= share;
  return slice;
}

} // namespace ptxrewrite::timing
