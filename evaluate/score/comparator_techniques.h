// Machines that execute the same instructions in another way, as techniques of the model: the comparators of
// dac-isca17 §5.1.1, CAE and MTA, that of r2d2-isca23 §5, DAC-IDEAL, and the two dynamic units of composite-hpca13 §4,
// §5.
//
//  * CAE: what is affine goes to one of the affine units, of which each scheduler has one: it is issued in one clock
//    (two, where a warp takes two on the lanes) and occupies no lanes. Expanding affine registers is free.
//  * MTA: a line that was prefetched comes as much earlier as the trips or warps between its request and its use take;
//    all that is fetched crosses L2 and DRAM, used or not.
//  * Scalar unit: an instruction of scalars is issued beside one of another warp, to a pipeline of its own that takes
//  as
//    long for it as the lanes for a warp.
//  * Sliced datapath: two 16-bit instructions, of an odd and an even warp, are issued together as often as schedulers
//    meet by chance; a result that does not fit stalls the pipeline for a clock.
#pragma once

#include "emulator/machines/dac/stride_prefetcher.h"
#include "emulator/timing/model.h"

#include <map>

namespace ptxrewrite::timing {

// Shares of an instruction's executions, by its number.
Technique affine_unit_technique(const ModelInput& input, const std::map<uint32_t, double>& affine);

// Ideal machines that execute some instructions once for several warps (r2d2-isca23 §5: DAC without any overhead): the
// others neither fetch nor execute them.
Technique ideal_technique(const ModelInput& input, const std::map<uint32_t, double>& skipped);

Technique prefetch_technique(const ModelInput& input, const std::map<uint32_t, emulator::LoadPrefetches>& loads,
                             const emulator::PrefetchCounts& counts);

struct DatapathShares {
  double scalar = 0;  // on the scalar pipeline
  double paired = 0;  // issued together with another one's, on half of the lanes' width
  double stalled = 0; // whose result stalls
};
// Words of whole warps.
struct DatapathAccesses {
  double all = 0;                        // without either unit: reads and writes of the main register file
  double full = 0, half = 0, scalar = 0; // with them, by file
};
Technique datapath_technique(const ModelInput& input, const std::map<uint32_t, DatapathShares>& shares,
                             const DatapathAccesses& accesses);

// The scalar pipeline beside a machine that skips: input.technique. As far as the same instructions are skipped and
// scalar, they are taken to be the same executions.
Technique left_to_scalar_technique(const ModelInput& input, std::map<uint32_t, DatapathShares> shares,
                                   const DatapathAccesses& accesses);

// What composites take of their register file (composite-hpca13 Table 4), on top of `technique`.
void add_composite_energy(const emulator::Counters& counters, Technique& technique);

} // namespace ptxrewrite::timing
