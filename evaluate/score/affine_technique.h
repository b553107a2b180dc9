// DAC (dac-isca17 §4) in the timing model: a launch that the emulator ran as two streams.
//
//  * The affine warp is one additional warp of each SM. The counters of its stream give its instructions; its dependent
//    instructions have their usual latencies, and a batch of blocks does not end before it does.
//  * Loads whose addresses it provides are requested ahead: run_ahead.h. Caches, L2 and DRAM see all their lines, which
//    are in the recording of the body, so bandwidth limits still hold.
//  * Expansion (§4.2, §4.3): one addition per line and per block, in an address unit; comparisons, in a predicate unit;
//    if all lanes are compared, an instruction on the SIMT lanes.
//  * Early requests use the L1 port once more than loads of the original.
#pragma once

#include "emulator/machines/dac/affine_counters.h"
#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// `input`: of the run as two streams, without a technique. `queue_entries`: per SM, shared by its warps.
Technique affine_technique(const ModelInput& input, const emulator::AffineCounters& counters,
                           uint32_t queue_entries = 192);

} // namespace ptxrewrite::timing
