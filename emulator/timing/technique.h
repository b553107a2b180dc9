// The changes that an architectural technique makes to the model: ModelInput::technique. It changes the executed
// instructions, the warps that execute them, and their latencies; time and energy are then computed by the model, as
// for the baseline. It contains no factor on a result. A default Technique is the baseline.
//
//   Technique technique;
//   technique.sites.resize(recording.sites.size());
//   technique.sites[number].skipped = 0.5;          // DARSIE: half of the executions are another warp's
//   technique.stalls[index(Cause::barrier)] += clocks; // additional waits
//   technique.active_warps = 5;                     // RegLess: those whose regions fit
//   input.technique = &technique;
#pragma once

#include "emulator/timing/machine_code.h"
#include "emulator/timing/run_ahead.h"
#include "ir/machine/files/energy_events.h"

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::timing {

using ir::EnergyEvent;
using ir::EventCounts;

struct Traffic;

using CauseClocks = std::array<double, cause_count>;
constexpr size_t index(Cause cause) {
  return static_cast<size_t>(cause);
}

// A figure that contributed to a time, for display.
struct TimeFigure {
  std::string name;
  double value = 0;
  std::string_view unit;
};

// Lines of a load that a prefetcher fetched ahead, as shares of L1's misses and of all lines.
struct Prefetched {
  double of_misses = 0, of_accesses = 0;
  double trips = 0, warps = 0; // from the request to the use of a mean line
};

// Changes of one static instruction, per execution by a warp.
struct SiteChange {
  double skipped = 0;      // share of executions that are neither fetched nor executed: a warp that skips waits for the
                           // result of the warp that does not
  double slots = 1;        // issue slots per machine instruction
  double beside = 0;       // of them, issued beside another warp's instruction: only this warp spends them
  double unit = 1;         // factor on the clocks of its unit; 0: it runs on another one (Technique::demands)
  double more_latency = 0; // additional clocks until the result is available; negative: fewer
  double early_stall = 0;  // clocks that its issue waits for a resource of the technique
  Cause early_cause = Cause::issue; // the cause of early_stall: the row of the CPI stack
  bool joins = false;               // before that, it waits for all registers that the warp has yet to write
  bool reads_parts = false;         // it reads results of Technique::parts
  Prefetched prefetched;
};

// A warp on each SM in addition to those of the launch. Its instructions are in the counters, like all that compete for
// issue slots and units; a wave ends only after the added warp has ended.
struct AddedWarp {
  const Cluster* profile = nullptr; // numbers refer to the same sites
  Cause cause = Cause::issue;       // its row in the CPI stack if the wave waits for it
};

// Steps that some warps of the launch execute in addition to their own sequence, less often than once per warp. Until
// they are done, no warp passes the first instruction that reads their results (SiteChange::reads_parts).
enum class PartOf : uint8_t {
  sm_by_warp,  // once on every SM, by a warp of its first block, before everything else
  sm_by_block, // likewise, by all warps of the block
  block,       // once per block, by its first warp
};
struct AddedPart {
  const Cluster* profile = nullptr; // numbers refer to the same sites
  PartOf of = PartOf::block;
};

struct Technique {
  std::vector<SiteChange> sites; // by number; empty: no changes
  // Synchronisations at branches, per block; all its warps take part.
  double branch_syncs = 0;
  // Warps of a scheduler that may be active at a time. Other resident warps wait for their turn or for global
  // memory.
  double active_warps = HUGE_VAL;
  std::vector<AddedWarp> added_warps;
  std::vector<AddedPart> parts;              // Cause::linear in the CPI stack
  std::shared_ptr<const Traffic> traffic;    // the caches, accessed in its order of warps; nullptr: the baseline's
  std::shared_ptr<const RunAhead> run_ahead; // warps that take from queues; nullptr: none
  // Clocks per warp, by cause, that no other warps hide. (Clocks that they can hide are SiteChange::early_stall.)
  CauseClocks stalls{};
  // For the whole launch: clocks of SMs' units and ports (memory_port, added rows of Cause), additional machine
  // instructions issued by warps, and bytes.
  CauseClocks demands{};
  double instructions = 0;
  double l2_bytes = 0, dram_read_bytes = 0, dram_write_bytes = 0;
  // Events of the whole launch in addition to those of the instructions; negative: fewer.
  ir::EventCounts events{};
  // The figures that the technique was computed from; the model passes them on.
  std::vector<TimeFigure> terms;

  const SiteChange& at(uint32_t number) const {
    static constexpr SiteChange none;
    return number < sites.size() ? sites[number] : none;
  }
};

inline double& event(Technique& technique, ir::EnergyEvent which) {
  return technique.events[static_cast<size_t>(which)];
}

} // namespace ptxrewrite::timing
