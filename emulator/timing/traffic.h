// Where accesses find their data: the accesses of a recording go through an L1 cache per SM and one L2, in the order in
// which blocks that are on SMs at the same time would make them.
//
//  * The resident blocks' warps of an SM take turns, one access each; so do SMs. A block that is over makes room for
//  the
//    SM's next one.
//  * L1 is sectored, write-through and allocates for loads alone; L2 is sectored, write-back, and fetches nothing for
//    stores. Atomics are done in L2.
//  * L1 starts empty. L2 starts with what the launches before left in it. As long as all of those were looked at, it is
//    known line by line; else parts of allocations are covered to so much, and a line of one is there so often.
//
// Where only some SMs were looked at, they share L2 with SMs that are not simulated. The number of different sectors U
// is counted for one SM (on average) and for all n that were looked at; what grows with n is private, the rest shared,
// so that U of all SMs follows, but of no allocation more than it has. The simulated L2 is as much smaller as the lines
// of some SMs are fewer than those of all (not as windows have fewer than all of a warp: what is used again soon is in the
// same window), and a first touch counts as a miss as often as it would be the first of all SMs. Where only windows of the
// warps were looked at, U grows with time in the same way, from its mean over odd and even windows to all of them.
#pragma once

#include "emulator/timing/cache.h"
#include "emulator/timing/line_table.h"

#include <functional>

namespace ptxrewrite::timing {

struct MemorySystem {
  uint64_t l1_bytes = 0; // per SM; 0: there is none
  uint64_t l2_bytes = 0;
  uint32_t l2_slices = 0;       // 0: not known
  uint32_t resident_blocks = 1; // per SM
  // Do loads of this instruction go past L1?
  std::function<bool(const Site&)> bypasses_l1;
};

// Loads of one static instruction, in the blocks that were looked at.
struct LoadLevels {
  uint64_t loads = 0;                                        // by warps
  uint64_t slowest_l1 = 0, slowest_l2 = 0, slowest_dram = 0; // which level the last of a load's sectors came from
  uint64_t first_touches = 0; // of slowest_dram: the first access to a sector among the SMs that were looked at
  double cold = 0;            // of them, those that are the first of all SMs and launches: expected
  uint64_t miss_lines = 0;    // lines that L1 asked L2 for
};

// In sectors of 32 bytes. Of one static instruction, in the blocks that were looked at.
struct SectorCounts {
  uint64_t reads = 0, writes = 0; // loads, stores; atomics are both
  uint64_t l1_hits = 0;
  uint64_t l2_hits = 0;
  uint64_t dram = 0;          // of them, capacity and conflict misses
  uint64_t first_touches = 0; // and first accesses among these SMs
  double cold = 0;            // of them, the first of all SMs and launches: expected
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
  uint64_t simulated_l2_bytes = 0;
  // Of the sectors that are read from L2, those that the slice has that most come from: lines lie in slices by turns,
  // so that it is one in so many slices, or what one line that all SMs read makes of it. 0: slices are not known.
  double hottest_slice = 0;
};

// An allocation in parts: how much of each is in L2.
class Cover {
public:
  explicit Cover(const LineRange& lines);
  const LineRange& lines() const { return lines_; }
  size_t parts() const { return shares_.size(); }
  size_t part_of(uint64_t line) const { return static_cast<size_t>((line - lines_.first) >> shift_); }
  double share_at(uint64_t line) const { return shares_[part_of(line)]; }
  double lines_there() const;
  void scale(double factor);
  // After a launch of which it was seen that it touches these lines of each part, and that touches `growth` times as
  // many in all; of them a share of `there` stays.
  void add(const std::vector<double>& touched, double growth, double there);

private:
  double size_of(size_t part) const;
  LineRange lines_;
  unsigned shift_ = 0; // a part has 2^shift lines, the last one fewer
  std::vector<double> shares_;
};

// What launches left in L2; and the memory that the next one's caches are in.
struct CacheState {
  SectoredCache l2;
  bool holds_lines = false; // l2 is as a launch left it that was looked at as a whole
  bool is_exact = true;     // l2 has all that there is; without lines: there is nothing
  std::vector<Cover> covers;
  std::vector<SectoredCache> l1s;
  LineTable lines;

  // Nothing is in L2, as when a profiler has flushed it.
  void forget() {
    holds_lines = false;
    is_exact = true;
    covers.clear();
  }
};

// `state`: as the launches before on the same machine left it; and as this one does. nullptr: it is the only launch.
Traffic simulate(const Recording& recording, const MemorySystem& memory, CacheState* state = nullptr);

// U of `all` SMs from its mean over single ones and its value for `some` of them.
double extrapolate_lines(double one, double some_lines, double some, double all);

} // namespace ptxrewrite::timing
