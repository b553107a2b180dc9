// The composite register file (composite-hpca13 §3.2): one slot per warp, which holds what the first half of the last
// composite instruction computed; and what a launch's composite instructions save.
#pragma once

#include "emulator/core/counters.h"

namespace ptxrewrite::emulator {

// In accesses of whole warps. The second half of a composite instruction takes the intermediate result from the
// register file, and so do the instructions that name %crf; without it each of them would read the main register file,
// and the first half would have written it.
struct CompositeCounts {
  uint64_t composites = 0; // executed by warps
  uint64_t lanes = 0;      // by threads
  uint64_t slot_writes = 0;
  uint64_t slot_reads = 0;
  uint64_t main_writes_avoided = 0;
  uint64_t main_reads_avoided = 0;

  CompositeCounts& operator+=(const CompositeCounts& other);
};

// Zero for every module that is not in this hardware form.
CompositeCounts composite_counts(const Counters& counters);

} // namespace ptxrewrite::emulator
