// Where accesses find their data: the accesses of a recording go through an L1 cache per SM and one L2, in the order in
// which blocks that are on SMs at the same time would make them.
//
//  * The resident blocks' warps of an SM take turns, one access each; so do SMs. A block that is over makes room for
//  the
//    SM's next one.
//  * L1 is sectored, write-through and allocates for loads alone; L2 is sectored, write-back, and fetches nothing for
//    stores. Atomics are done in L2.
//  * L1 starts empty. L2 starts with what the launch before left in it, or empty.
//
// Where only some SMs were looked at, they share L2 with SMs that are not simulated. The number of different lines U is
// counted for one SM (on average) and for all n that were looked at; what grows with n is private, the rest shared, so
// that U of all SMs follows, but never more than the allocations have. The simulated L2 is as much smaller as the lines
// are fewer, and a first touch counts as a miss as often as it would be the first of all SMs.
#pragma once

#include "emulator/timing/recorder.h"

#include <functional>

namespace ptxrewrite::timing {

struct MemorySystem {
  uint64_t l1_bytes = 0; // per SM; 0: there is none
  uint64_t l2_bytes = 0;
  uint32_t resident_blocks = 1; // per SM
  // Do loads of this instruction go past L1?
  std::function<bool(const Site&)> bypasses_l1;
};

// Loads of one static instruction, in the blocks that were looked at.
struct LoadLevels {
  uint64_t loads = 0;                                        // by warps
  uint64_t slowest_l1 = 0, slowest_l2 = 0, slowest_dram = 0; // which level the last of a load's sectors came from
  double first_touches = 0; // of slowest_dram: the first access to a sector among the SMs that were looked at
  uint64_t miss_lines = 0;  // lines that L1 asked L2 for
};

// In sectors of 32 bytes. Of one static instruction, in the blocks that were looked at.
struct SectorCounts {
  uint64_t reads = 0, writes = 0; // loads, stores; atomics are both
  uint64_t l1_hits = 0;
  uint64_t l2_hits = 0;
  uint64_t dram = 0;          // of them, capacity and conflict misses
  uint64_t first_touches = 0; // and first accesses among these SMs
  uint64_t l2_write_hits = 0; // of writes: the line was there
  // In lines.
  uint64_t read_lines = 0, l1_hit_lines = 0; // hits: with all that is wanted of them
  uint64_t write_lines = 0, l1_write_hits = 0;
};

struct Traffic {
  std::vector<LoadLevels> levels;    // by number
  std::vector<SectorCounts> sectors; // by number
  uint64_t dirty_written_back = 0;   // sectors, in the blocks that were looked at
  double lines_seen = 0;             // U of the SMs that were looked at
  double lines_all = 0;              // U of all
  double first_touch_share = 1;      // of first touches in the recording: those that are the first of all SMs
  uint64_t simulated_l2_bytes = 0;
};

// `before`: the launch before this one on the same machine; nullptr: there is none.
Traffic simulate(const Recording& recording, const MemorySystem& memory, const Recording* before = nullptr);

// U of `all` SMs from its mean over single ones and its value for `some` of them.
double extrapolate_lines(double one, double some_lines, double some, double all);

} // namespace ptxrewrite::timing
