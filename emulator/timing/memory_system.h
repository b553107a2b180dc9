// The caches of a machine as a kernel finds them.
#pragma once

#include "emulator/timing/traffic.h"
#include "ir/machine/figures/machine.h"

namespace ptxrewrite::timing {

// From compute capability 7.0 on, L1 is what the shared memory of the resident blocks leaves of one array, in steps
// that each generation has; before, it is as large as the table says.
uint64_t l1_bytes(const ir::Machine& machine, uint64_t shared_bytes_per_sm);

// Loads go past L1 where they say so (.cg, .cv, volatile, strong ones); on compute capability 3.x, 5.x, 6.1 and 6.2 all
// loads of global memory do but for read-only ones (ld.global.nc): tuning guides of Kepler, Maxwell and Pascal. In set B
// of tests/silicon, bpnn_adjust_weights_cuda reads 770,000 sectors from L2 on Kepler and Maxwell, 300,000 on P100 (6.0).
bool bypasses_l1(const ir::Machine& machine, const ir::Form& form);

// What one slice of L2 reads in a clock: two sectors from compute capability 7.0 on (64 bytes a clock and slice: A100's
// white paper, for V100 and A100), one before, as the line that all blocks of set B's bpnn_adjust_weights_cuda read
// shows (tests/silicon).
double l2_slice_bytes_per_clock(const ir::Machine& machine);

MemorySystem memory_system(const ir::Machine& machine, uint64_t shared_bytes_per_block, uint32_t resident_blocks);

} // namespace ptxrewrite::timing
