// Simulates the caches: the accesses of a recording pass an L1 per SM and one L2, in the order in which blocks that run
// on SMs at the same time would make them.
//
//  * The warps of an SM's resident blocks take turns, one access each; so do the SMs. When a block ends, the next
//    block of its SM takes its place. If a technique limits the active warps, the oldest that do not wait at a barrier
//    take turns.
//  * L1 is sectored, write-through and allocates for loads only; L2 is sectored, write-back, and does not fetch for
//    stores. Atomics are executed in L2.
//  * L1 starts empty. L2 starts with the data of earlier launches. As long as all of those were looked at as a
//    whole, its lines are known; otherwise a share is known for each part of the allocations, and a line of the part
//    is present with that probability.
//
// If only some SMs were looked at, they share L2 with SMs that are not simulated. The number of different sectors U is
// counted for one SM (on average) and for all n SMs that were looked at; the part that grows with n is private, the
// rest shared, from which U of all SMs follows, limited by the size of each allocation. The simulated L2 is scaled by
// the ratio of the lines of some SMs to those of all (not by that of windows to whole warps: data are reused soon, in
// the same window), and a first touch counts as a miss with the probability that it is the first of all SMs. If warps
// were looked at in windows, U grows with time in the same way, from its mean over odd and even windows to all.
#pragma once

#include "emulator/timing/cache.h"
#include "emulator/timing/line_table.h"

#include <functional>

namespace ptxrewrite::timing {

struct MemorySystem {
  uint64_t l1_bytes = 0; // per SM; 0: no L1
  uint64_t l2_bytes = 0;
  uint32_t l2_slices = 0;       // 0: unknown
  uint32_t resident_blocks = 1; // per SM
  uint32_t active_warps = 0;    // per SM: others wait until one of these ends or waits at a barrier; 0: no limit
  bool cold = false;            // L2 starts empty, whatever ran before
  // Whether loads of this instruction bypass L1.
  std::function<bool(const Site&)> bypasses_l1;
  // By number: accesses of the recording that the machine code does not make (MachineCode::absent_accesses).
  std::vector<bool> absent;
};

// Loads of one static instruction, in the blocks that were looked at.
struct LoadLevels {
  uint64_t loads = 0;                                        // by warps
  uint64_t slowest_l1 = 0, slowest_l2 = 0, slowest_dram = 0; // the level that delivered the last of a load's sectors
  uint64_t first_touches = 0; // of slowest_dram: the first access to a sector among the SMs looked at
  double cold = 0;            // expected number of them that are the first of all SMs and launches
  uint64_t miss_lines = 0;    // lines that L1 requested from L2
};

// Numbers of 32-byte sectors accessed by one static instruction, in the blocks that were looked at.
struct SectorCounts {
  uint64_t reads = 0, writes = 0; // loads, stores; atomics count as both
  uint64_t l1_hits = 0;
  uint64_t l2_hits = 0;
  uint64_t dram = 0;          // read from DRAM: capacity and conflict misses
  uint64_t first_touches = 0; // first accesses among the SMs looked at
  double cold = 0;            // expected number of them that are the first of all SMs and launches
  uint64_t l2_write_hits = 0; // of writes: the line was present
  // Numbers of lines.
  uint64_t read_lines = 0, l1_hit_lines = 0; // hits: with all requested sectors
  uint64_t write_lines = 0, l1_write_hits = 0;
};

struct Traffic {
  std::vector<LoadLevels> levels;    // by number
  std::vector<SectorCounts> sectors; // by number
  uint64_t dirty_written_back = 0;   // sectors, in the blocks that were looked at
  double lines_seen = 0;             // U of the SMs that were looked at
  double lines_all = 0;              // U of all SMs
  uint64_t simulated_l2_bytes = 0;
  // The share of the busiest L2 slice in the sectors read from L2. Lines are distributed over slices in turns, so it is
  // about 1 / slices, or more if all SMs read one line. 0: the number of slices is unknown.
  double hottest_slice = 0;
};

// An allocation divided into parts, with the share of each part that is in L2.
class Cover {
public:
  explicit Cover(const LineRange& lines);
  const LineRange& lines() const { return lines_; }
  size_t parts() const { return shares_.size(); }
  size_t part_of(uint64_t line) const { return static_cast<size_t>((line - lines_.first) >> shift_); }
  double share_at(uint64_t line) const { return shares_[part_of(line)]; }
  double lines_there() const;
  void scale(double factor);
  // Updates the shares after a launch that touched these lines of each part in the recording, and `growth` times as
  // many in all, of which a share of `there` stays in L2.
  void add(const std::vector<double>& touched, double growth, double there);

private:
  double size_of(size_t part) const;
  LineRange lines_;
  unsigned shift_ = 0; // a part has 2^shift lines, the last one fewer
  std::vector<double> shares_;
};

// The contents of L2 after launches, and reusable memory for the caches of the next one.
struct CacheState {
  SectoredCache l2;
  bool holds_lines = false; // l2 is in the state after a launch that was looked at as a whole
  bool is_exact = true;     // l2 has all data of earlier launches; without lines: it is empty
  std::vector<Cover> covers;
  std::vector<SectoredCache> l1s;
  LineTable lines;

  // Empties L2, as a profiler does that flushes it.
  void forget() {
    holds_lines = false;
    is_exact = true;
    covers.clear();
  }
};

// `state`: the caches after earlier launches on the same machine, updated by this one. nullptr: the only launch.
Traffic simulate(const Recording& recording, const MemorySystem& memory, CacheState* state = nullptr);

// U of `all` SMs from its mean over single SMs and its value for `some` of them.
double extrapolate_lines(double one, double some_lines, double some, double all);

} // namespace ptxrewrite::timing
