// DAC's machine as a launch asks for it, and what it counts (dac-isca17 §4, §5.3 to §5.5).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

// Settings of a launch (LaunchRequest::machines) for kernels in DAC's hardware form, which run on its machine.
struct AffineSettings {
  // Entries of each warp's address queue and predicate queue; 0: its share of the SM's 192 each.
  uint32_t entries_per_warp = 0;
  // Blocks that an SM holds at a time: a batch of the affine warp; 0: what a GTX 480 holds, whatever the registers.
  uint32_t resident_blocks = 0;
  // SMs that share the blocks; 0: those that the launch is counted for (LaunchRequest::multiprocessors).
  uint32_t multiprocessors = 0;
  // The original kernel runs first, on the same memory; each address, predicate and datum that leaves a queue must be
  // what it had there. Data are left out where the order of blocks may show in them, or always.
  bool check = false;
  bool check_data = true;
};

// Results of a launch of a kernel in that form (LaunchResult::machines). Warp instructions unless a line says
// otherwise.
struct AffineCounters {
  uint64_t affine = 0;   // of the affine stream, once a batch
  uint64_t body = 0;     // of the other stream
  uint64_t baseline = 0; // of the original kernel; 0 unless it ran, too (AffineSettings::check)
  uint64_t batches = 0;
  uint64_t checked = 0; // what left the queues and was compared with the original

  // Load instructions in global and local memory: all that a warp executes, and those of them whose requests the affine
  // warp made (Fig. 19).
  uint64_t loads = 0, early_loads = 0;
  uint64_t tuples = 0;                                   // that came into the affine tuple queue
  uint64_t addresses = 0, predicates = 0;                // that warps took from their queues
  std::array<uint64_t, 3> predicate_cases = {};          // setp of one warp, by PredicateCase (§4.3)
  uint64_t comparisons = 0;                              // that they took
  uint64_t block_starts = 0, lines = 0, adjustments = 0; // of address expansion: additions (§4.2)
  uint64_t adjusted_lines = 0;                           // lines whose addition is an adjustment
  uint64_t requested_lines = 0;                          // of 128 bytes
  uint64_t locked_lines = 0;                             // of them: locked anew; the others were
  uint64_t unlockable_lines = 0;                         // of one warp more than the ways of a set
  uint64_t most_locked = 0;                              // lines at a time

  // Turns in which somebody waited.
  uint64_t tuple_queue_full = 0, waits_for_given = 0;               // the affine warp
  uint64_t warp_queue_full = 0, barrier_holds = 0, lock_stalls = 0; // expansion for a warp
  uint64_t queue_empty = 0, data_not_there = 0, given_full = 0;     // a warp

  uint64_t lead = 0, most_lead = 0; // trips that the affine warp was ahead when a datum was taken: sum, and most
  uint64_t deepest_stack = 0;       // entries
  uint64_t stack_warp_updates = 0, stack_lane_updates = 0;
  uint64_t conditions = 0;     // kept in the register file of divergent conditions
  uint64_t most_tuples = 0;    // of a register
  uint64_t fallbacks = 0;      // launches in which the machine gave up and the original ran instead
  std::string fallback_reason; // of the first one

  std::vector<uint64_t> executions; // of the affine stream, by InstructionId
  std::vector<uint64_t> lanes;      // likewise: SIMT lanes that tuples took

  double lead_in_trips() const {
    return early_loads ? static_cast<double>(lead) / static_cast<double>(early_loads) : 0;
  }
  AffineCounters& operator+=(const AffineCounters& other);
};

// All numbers with a name to show them by.
struct NamedAffineCount {
  std::string_view name;
  uint64_t count = 0;
};
std::vector<NamedAffineCount> named_counts(const AffineCounters& counters);

} // namespace ptxrewrite::emulator
