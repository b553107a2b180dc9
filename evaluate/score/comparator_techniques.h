// Machines that execute the same instructions in a different way, as techniques of the model: the comparators of
// dac-isca17 §5.1.1, CAE and MTA, that of r2d2-isca23 §5, DAC-IDEAL, and the two dynamic units of composite-hpca13 §4,
// §5.
//
//  * CAE: affine instructions go to an affine unit, one for each scheduler: they are issued in one clock (two, if a
//    warp takes two on the lanes) and occupy no lanes. Expanding affine registers is free.
//  * MTA: a prefetched line arrives earlier by the time of the trips or warps between its request and its use; all
//    fetched lines use L2 and DRAM bandwidth, whether they are used or not.
//  * Scalar unit: an instruction on scalars is issued together with one of another warp, to a separate pipeline that
//    takes as long for it as the lanes for a warp.
//  * Sliced datapath: two 16-bit instructions, of an odd and an even warp, are issued together as often as schedulers
//    happen to have such a pair; a result that does not fit stalls the pipeline for a clock.
#pragma once

#include "emulator/machines/dac/stride_prefetcher.h"
#include "emulator/timing/model.h"

#include <map>

namespace ptxrewrite::timing {

// `affine`: shares of an instruction's executions, by its number.
Technique affine_unit_technique(const ModelInput& input, const std::map<uint32_t, double>& affine);

// Ideal machines that execute some instructions once for several warps (r2d2-isca23 §5: DAC without overhead): the
// other warps neither fetch nor execute them.
Technique ideal_technique(const ModelInput& input, const std::map<uint32_t, double>& skipped);

Technique prefetch_technique(const ModelInput& input, const std::map<uint32_t, emulator::LoadPrefetches>& loads,
                             const emulator::PrefetchCounts& counts);

struct DatapathShares {
  double scalar = 0;  // on the scalar pipeline
  double paired = 0;  // issued together with another one, on half of the lanes' width
  double stalled = 0; // with a result that stalls
};
// Accesses to words of whole warps.
struct DatapathAccesses {
  double all = 0;                        // without either unit: reads and writes of the main register file
  double full = 0, half = 0, scalar = 0; // with them, by file
};
Technique datapath_technique(const ModelInput& input, const std::map<uint32_t, DatapathShares>& shares,
                             const DatapathAccesses& accesses);

// The scalar pipeline in addition to a machine that skips instructions: input.technique. Where the same instructions
// are both skipped and scalar, their executions are assumed to coincide.
Technique left_to_scalar_technique(const ModelInput& input, std::map<uint32_t, DatapathShares> shares,
                                   const DatapathAccesses& accesses);

// Adds the register file energy of composites (composite-hpca13 Table 4) to `technique`.
void add_composite_energy(const emulator::Counters& counters, Technique& technique);

} // namespace ptxrewrite::timing
