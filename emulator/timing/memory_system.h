// The caches of a machine as a kernel finds them.
#pragma once

#include "emulator/timing/traffic.h"
#include "ir/machine/figures/machine.h"

namespace ptxrewrite::timing {

// From compute capability 7.0 on, L1 is what the shared memory of the resident blocks leaves of one array, in steps
// that each generation has; before, it is as large as the table says.
uint64_t l1_bytes(const ir::Machine& machine, uint64_t shared_bytes_per_sm);

// Loads go past L1 where they say so (.cg, .cv, volatile, strong ones); on compute capability 5.x and 6.x all loads of
// global memory do but for read-only ones (ld.global.nc).
bool bypasses_l1(const ir::Machine& machine, const ir::Form& form);

MemorySystem memory_system(const ir::Machine& machine, uint64_t shared_bytes_per_block, uint32_t resident_blocks);

} // namespace ptxrewrite::timing
