// The caches of a machine, configured for a kernel.
#pragma once

#include "emulator/timing/traffic.h"
#include "ir/machine/figures/machine.h"

namespace ptxrewrite::timing {

// The size of L1. From compute capability 7.0 on, it is the rest of one array after the shared memory of the resident
// blocks, which comes in sizes that depend on the generation; before, the size is a figure of the table.
uint64_t l1_bytes(const ir::Machine& machine, uint64_t shared_bytes_per_sm);

// Loads bypass L1 if they say so (.cg, .cv, volatile, strong); on compute capability 3.x, 5.x, 6.1 and 6.2 all loads of
// global memory except read-only ones (ld.global.nc) do: tuning guides of Kepler, Maxwell and Pascal. In set B of
// tests/silicon, bpnn_adjust_weights_cuda reads 770,000 sectors from L2 on Kepler and Maxwell, 300,000 on P100 (6.0).
bool bypasses_l1(const ir::Machine& machine, const ir::Form& form);

// The read bandwidth of one L2 slice per clock: two sectors from compute capability 7.0 on (64 bytes a clock and slice:
// A100's white paper, for V100 and A100), one sector before, as measured on the line that all blocks of set B's
// bpnn_adjust_weights_cuda read (tests/silicon).
double l2_slice_bytes_per_clock(const ir::Machine& machine);

MemorySystem memory_system(const ir::Machine& machine, uint64_t shared_bytes_per_block, uint32_t resident_blocks);

} // namespace ptxrewrite::timing
