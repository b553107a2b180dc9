// Makes a function fit into a number of registers: values are kept in local memory, or recomputed before their readers.
// Returns the allocation of ir/machine/registers/allocation.h.
#pragma once

#include "ir/machine/registers/allocation.h"

namespace ptxrewrite::transforms {

struct SpillStatistics {
  uint32_t rounds = 0;
  uint32_t spilled = 0;    // registers of the allocator; a value and the block parameters that share its register count
                           // as one
  uint32_t recomputed = 0; // values
  uint32_t loads = 0, stores = 0;
  uint32_t bytes = 0; // of local memory per thread
};

// The function must be in SSA form. Fails if no more values can be spilled; the function is then valid, but does not
// fit.
Result<ir::Allocation> spill_to_limit(ir::Function& function, const ir::AllocationOptions& options,
                                      SpillStatistics& statistics);

} // namespace ptxrewrite::transforms
