// DAC (dac-isca17 §4) in the model: a launch that ran as two streams on the emulator's machine.
//
//  * The affine warp is one more warp of each SM. What it executes is in the counters of its stream; its dependent
//    instructions take their time, and a batch of blocks is not over before it is.
//  * Loads whose addresses it brings were asked for ahead: run_ahead.h. Caches, L2 and DRAM see all their lines, which
//    the recording of the body has, so that nothing beats bandwidth.
//  * Expansion (§4.2, §4.3): one addition by line and by block, in a unit of addresses; comparisons, in a unit of
//    predicates; where all lanes are compared, an instruction on the SIMT lanes.
//  * Early requests pass the port of L1 once more than loads of the original do.
#pragma once

#include "emulator/machines/dac/affine_counters.h"
#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// `input`: of the run as two streams, without a technique. `queue_entries`: of an SM, shared out among its warps.
Technique affine_technique(const ModelInput& input, const emulator::AffineCounters& counters,
                           uint32_t queue_entries = 192);

} // namespace ptxrewrite::timing
