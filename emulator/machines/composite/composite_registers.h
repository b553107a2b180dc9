// The composite register file (composite-hpca13 §3.2): one slot per warp, which holds the result of the first half of
// the last composite instruction; and the register accesses that a launch's composite instructions save.
#pragma once

#include "emulator/core/counters.h"

namespace ptxrewrite::emulator {

// Counts accesses of whole warps. The second half of a composite instruction reads the intermediate result from the
// composite register file, and so do instructions that name %crf; without it each of them would read the main register
// file, and the first half would write it.
struct CompositeCounts {
  uint64_t composites = 0; // executed by warps
  uint64_t lanes = 0;      // by threads
  uint64_t slot_writes = 0;
  uint64_t slot_reads = 0;
  uint64_t main_writes_avoided = 0;
  uint64_t main_reads_avoided = 0;

  CompositeCounts& operator+=(const CompositeCounts& other);
};

// All zero for modules that are not in this hardware form.
CompositeCounts composite_counts(const Counters& counters);

} // namespace ptxrewrite::emulator
