// Makes a function fit into a number of registers: values wait in local memory, or are computed again where they are
// read. The allocation that results is ir/machine/registers/allocation.h's.
#pragma once

#include "ir/machine/registers/allocation.h"

namespace ptxrewrite::transforms {

struct SpillStatistics {
  uint32_t rounds = 0;
  uint32_t spilled = 0;    // registers of the allocator, of which a value and the parameters it goes through share one
  uint32_t recomputed = 0; // values
  uint32_t loads = 0, stores = 0;
  uint32_t bytes = 0; // of local memory per thread
};

// An error if no more can be spilled; the function is right then too, but does not fit. SSA form.
Result<ir::Allocation> spill_to_limit(ir::Function& function, const ir::AllocationOptions& options,
                                      SpillStatistics& statistics);

} // namespace ptxrewrite::transforms
