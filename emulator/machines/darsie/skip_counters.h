// Settings and counters of launches on DARSIE's machine (darsie §4.3 to §6.2).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

enum class SkipVariant : uint8_t {
  standard,
  ignore_store,   // stores leave loads in the skip table (IGNORE-STORE); see SkipCounters::stale_wrong
  no_branch_sync, // no warp ever waits for another: measures the cost of synchronisation (NO-CF-SYNC)
  paper_marks,    // standard, with the marks of the paper's rules (ir::MarkRules::paper) if the text has no marks
};
inline constexpr std::array<SkipVariant, 4> all_skip_variants = {SkipVariant::standard, SkipVariant::ignore_store,
                                                                 SkipVariant::no_branch_sync, SkipVariant::paper_marks};
std::string_view spelling(SkipVariant variant); // "standard", "ignore-store", "no-cf-sync", "paper-marks"

// Settings of a launch (LaunchRequest::machines): they run it on DARSIE's machine, with the marks in the text or else
// those of the analysis. Not supported with an observer.
struct SkipSettings {
  SkipVariant variant = SkipVariant::standard;
  // Followers also execute what they skip; a result that differs from the shared one is a fault of the kernel.
  bool check = false;
  // False: followers execute instead of taking shared results. The order of warps is the same as with skipping, so that
  // kernels whose results depend on it can be compared.
  bool share = true;
  // Seed of a random order of warps; 0: each warp executes or skips one instruction in turn.
  uint64_t order_seed = 0;
};

// Results of a launch on that machine (LaunchResult::machines). Counts of warp instructions unless stated otherwise.
struct SkipCounters {
  uint64_t executed = 0;
  std::array<uint64_t, 3> skipped = {}; // by ir::MarkKind: uniform, affine, unstructured
  uint64_t skipped_loads = 0;           // of those
  uint64_t led = 0;                     // executed for the block
  // Redundant, but executed by a warp for itself, because: its lanes are not all active or it is not on the majority
  // path; the skip table is full; no register is free for the result; no other warp is on the path.
  uint64_t off_path = 0, no_entry = 0, no_register = 0, alone = 0;

  uint64_t branch_syncs = 0;                           // of the block
  uint64_t branch_waits = 0;                           // warps that waited in them
  uint64_t register_syncs = 0;                         // of the block, for free registers
  uint64_t forced_syncs = 0;                           // aborted, because the warps that were waited for waited, too
  uint64_t left_path = 0;                              // warps
  uint64_t copied = 0;                                 // renamed registers that warps copied back
  uint64_t evictions = 0;                              // entries replaced by one for another pc
  uint64_t dropped_by_store = 0, dropped_by_fence = 0; // loads removed from the table while followers were expected
  uint64_t renames = 0;                                // versions of registers
  uint64_t most_registers = 0;                         // renamed at a time in a block
  uint64_t most_versions = 0;                          // of one register at a time
  uint64_t probes = 0;                                 // of the skip table, by warps
  uint64_t port_accesses = 0;                          // of the probes, those left by the PC coalescer
  uint64_t port_conflicts = 0;                         // rounds of the warps times the additional cycles with two ports
  // IGNORE-STORE: skipped loads that the standard machine would have executed; and those of them that were executed
  // because the shared result would have been wrong.
  uint64_t stale = 0, stale_wrong = 0;

  std::vector<uint64_t> skipped_by_instruction; // of the entry, by InstructionId

  uint64_t all_skipped() const { return skipped[0] + skipped[1] + skipped[2]; }
  SkipCounters& operator+=(const SkipCounters& other);
};

// All counters with their names, for display, in the order above.
struct NamedCount {
  std::string_view name;
  uint64_t count = 0;
};
std::vector<NamedCount> named_counts(const SkipCounters& counters);

} // namespace ptxrewrite::emulator
