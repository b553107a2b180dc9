// Settings and counters of launches on DAC's machine (dac-isca17 §4, §5.3 to §5.5).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

// Settings of a launch (LaunchRequest::machines) for kernels in DAC's hardware form, which run on DAC's machine.
struct AffineSettings {
  // Entries of each warp's address queue and predicate queue; 0: the warp's share of the SM's 192 entries each.
  uint32_t entries_per_warp = 0;
  // Blocks that an SM holds at a time, a batch of the affine warp; 0: as on a GTX 480, ignoring registers.
  uint32_t resident_blocks = 0;
  // SMs that share the blocks; 0: as in LaunchRequest::multiprocessors.
  uint32_t multiprocessors = 0;
  // The original kernel runs first, on the same memory; each address, predicate and datum that leaves a queue must
  // equal its value there. Data are not compared if they may depend on the order of blocks, or if check_data is off.
  bool check = false;
  bool check_data = true;
};

// Results of a launch of a kernel in that form (LaunchResult::machines). Counts of warp instructions unless stated
// otherwise.
struct AffineCounters {
  uint64_t affine = 0;   // of the affine stream, once per batch
  uint64_t body = 0;     // of the other stream
  uint64_t baseline = 0; // of the original kernel; 0 unless it ran, too (AffineSettings::check)
  uint64_t batches = 0;
  uint64_t checked = 0; // queue entries that were compared with the original

  // Load instructions of global and local memory: all that warps execute, and those of them whose requests the affine
  // warp made (Fig. 19).
  uint64_t loads = 0, early_loads = 0;
  uint64_t tuples = 0;                                   // pushed into the affine tuple queue
  uint64_t addresses = 0, predicates = 0;                // taken by warps from their queues
  std::array<uint64_t, 3> predicate_cases = {};          // setp of one warp, by PredicateCase (§4.3)
  uint64_t comparisons = 0;                              // executed for them
  uint64_t block_starts = 0, lines = 0, adjustments = 0; // of address expansion: additions (§4.2)
  uint64_t adjusted_lines = 0;                           // lines whose addition is an adjustment
  uint64_t requested_lines = 0;                          // of 128 bytes
  uint64_t locked_lines = 0;                             // of them, newly locked; the others were locked already
  uint64_t unlockable_lines = 0;                         // lines of one warp in excess of the lockable ways of a set
  uint64_t most_locked = 0;                              // lines at a time

  // Turns spent waiting.
  uint64_t tuple_queue_full = 0, waits_for_given = 0;               // by the affine warp
  uint64_t warp_queue_full = 0, barrier_holds = 0, lock_stalls = 0; // by expansion for a warp
  uint64_t queue_empty = 0, data_not_there = 0, given_full = 0;     // by a warp

  uint64_t lead = 0, most_lead = 0; // lead of the affine warp in trips when a datum is taken: sum and maximum
  uint64_t deepest_stack = 0;       // entries
  uint64_t stack_warp_updates = 0, stack_lane_updates = 0;
  uint64_t conditions = 0;     // stored in the register file of divergent conditions
  uint64_t most_tuples = 0;    // of a register
  uint64_t fallbacks = 0;      // launches in which the machine gave up and the original kernel ran instead
  std::string fallback_reason; // of the first fallback

  std::vector<uint64_t> executions; // of the affine stream, by InstructionId
  std::vector<uint64_t> lanes;      // by InstructionId: SIMT lanes occupied by tuples

  double lead_in_trips() const {
    return early_loads ? static_cast<double>(lead) / static_cast<double>(early_loads) : 0;
  }
  AffineCounters& operator+=(const AffineCounters& other);
};

// All counters with their names, for display.
struct NamedAffineCount {
  std::string_view name;
  uint64_t count = 0;
};
std::vector<NamedAffineCount> named_counts(const AffineCounters& counters);

} // namespace ptxrewrite::emulator
