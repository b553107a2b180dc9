// Instructions that the schedulers' own instruction caches miss: bytes that the next level delivers to an SM.
//
// A warp fetches straight code once for each time it executes it: by the time another warp comes to a line, the cache
// holds other lines. A loop whose code fits into the cache is fetched once each time it is entered. Between barriers
// warps drift apart; in a loop with a barrier in every trip they stay together, and the warps of a block that share a
// scheduler share the fetched lines. Code that fits the cache entirely is fetched once, which is not counted.
#pragma once

#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// Of the whole launch; 0 where the machine's figures (ir::FetchFacts) are not known.
double missed_instruction_bytes(const ModelInput& input);

} // namespace ptxrewrite::timing
