// DARSIE's machine as a launch asks for it, and what it counts (darsie §4.3 to §6.2).
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
  no_branch_sync, // no warp ever waits for another: what synchronisation costs (NO-CF-SYNC)
  paper_marks,    // standard, by the marks that the paper's rules give (ir::MarkRules::paper) where the text has none
};
inline constexpr std::array<SkipVariant, 4> all_skip_variants = {SkipVariant::standard, SkipVariant::ignore_store,
                                                                 SkipVariant::no_branch_sync, SkipVariant::paper_marks};
std::string_view spelling(SkipVariant variant); // "standard", "ignore-store", "no-cf-sync", "paper-marks"

// Settings of a launch (LaunchRequest::machines): with them it runs on DARSIE's machine, by the marks in the text or
// else by those of the analysis. Not with an observer.
struct SkipSettings {
  SkipVariant variant = SkipVariant::standard;
  // Followers execute what they skip, too; another result than the shared one is a fault of the kernel.
  bool check = false;
  // False: followers execute instead of taking what is shared. The warps' order is the same as with skipping, so that a
  // kernel whose results depend on it can be compared.
  bool share = true;
  // Of a random order of warps; 0: each executes or skips one instruction, then the next one does.
  uint64_t order_seed = 0;
};

// Results of a launch on that machine (LaunchResult::machines). Warp instructions unless a line says otherwise.
struct SkipCounters {
  uint64_t executed = 0;
  std::array<uint64_t, 3> skipped = {}; // by ir::MarkKind: uniform, affine, unstructured
  uint64_t skipped_loads = 0;           // of those
  uint64_t led = 0;                     // executed for the block
  // Redundant, and executed by a warp for itself: its lanes are not all active or it is not on the majority path; no
  // room in the skip table; no register for the result; nobody else is on the path.
  uint64_t off_path = 0, no_entry = 0, no_register = 0, alone = 0;

  uint64_t branch_syncs = 0;                           // of the block
  uint64_t branch_waits = 0;                           // warps that waited in them
  uint64_t register_syncs = 0;                         // of the block, for the freelist
  uint64_t forced_syncs = 0;                           // given up, because those who were waited for waited, too
  uint64_t left_path = 0;                              // warps
  uint64_t copied = 0;                                 // renamed registers that warps copied back
  uint64_t evictions = 0;                              // entries that made room for another pc
  uint64_t dropped_by_store = 0, dropped_by_fence = 0; // loads that left the table while followers were to come
  uint64_t renames = 0;                                // versions of registers
  uint64_t most_registers = 0;                         // renamed at a time in a block
  uint64_t most_versions = 0;                          // of one register at a time
  uint64_t probes = 0;                                 // of the skip table, by warps
  uint64_t port_accesses = 0;                          // what the PC coalescer left of them
  uint64_t port_conflicts = 0; // rounds of the warps times the further cycles that two ports took
  // IGNORE-STORE: skipped loads that the standard machine would have executed; and those of them whose result would
  // have been wrong, which were executed.
  uint64_t stale = 0, stale_wrong = 0;

  std::vector<uint64_t> skipped_by_instruction; // of the entry, by InstructionId

  uint64_t all_skipped() const { return skipped[0] + skipped[1] + skipped[2]; }
  SkipCounters& operator+=(const SkipCounters& other);
};

// All numbers with a name to show them by, in the order above.
struct NamedCount {
  std::string_view name;
  uint64_t count = 0;
};
std::vector<NamedCount> named_counts(const SkipCounters& counters);

} // namespace ptxrewrite::emulator
