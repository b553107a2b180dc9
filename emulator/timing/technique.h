// What a technique of an architecture brings into the model: ModelInput::technique. It changes what is executed, by
// whom, and how long that takes; the time and energy are then the model's, as for the baseline. Nothing in here is a
// factor on a result. A default Technique is the baseline.
//
//   Technique technique;
//   technique.sites.resize(recording.sites.size());
//   technique.sites[number].skipped = 0.5;          // DARSIE: half of the executions are another warp's
//   technique.stalls[index(Cause::barrier)] += clocks; // more of them
//   technique.active_warps = 5;                     // RegLess: whose regions fit
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

using CauseClocks = std::array<double, cause_count>;
constexpr size_t index(Cause cause) {
  return static_cast<size_t>(cause);
}

// A figure that went into a time, to be shown.
struct TimeFigure {
  std::string name;
  double value = 0;
  std::string_view unit;
};

// A load's lines that were fetched ahead, by a prefetcher. Shares of what L1 misses, and of all lines.
struct Prefetched {
  double of_misses = 0, of_accesses = 0;
  double trips = 0, warps = 0; // from the request to its use, of a mean line
};

// Of one static instruction, for each time a warp executes it.
struct SiteChange {
  double skipped = 0; // share of its executions that are neither fetched nor executed: who skips waits for the result
                      // of the one who does not
  double slots = 1;   // issue slots by machine instruction
  double beside = 0;  // of them: beside another warp's instruction, so that only this warp spends them
  double unit = 1;    // its unit is occupied for so many times as long; 0: it runs elsewhere (Technique::demands)
  double more_latency = 0;          // clocks until the result is there, more than without; negative: fewer
  double early_stall = 0;           // clocks that its issue waits for something that only the technique has
  Cause early_cause = Cause::issue; // what for: the row of the CPI stack
  bool joins = false;               // before that, it waits for all registers that the warp has still to write
  bool reads_parts = false;         // it takes what Technique::parts have computed
  Prefetched prefetched;
};

// A warp of each SM beside those of the launch. What it executes is in the counters, with everything else that
// competes for issue slots and units; a wave is not over before it is.
struct AddedWarp {
  const Cluster* profile = nullptr; // numbers are of the same sites
  Cause cause = Cause::issue;       // its row in the CPI stack, where the wave waits for it
};

// What some warps of the launch execute beside their own sequence, less often than once each. Until it is there, none
// goes on behind the first instruction that takes it (SiteChange::reads_parts).
enum class PartOf : uint8_t {
  sm_by_warp,  // once on every SM, by a warp of its first block, before anything else
  sm_by_block, // likewise, by all warps of the block
  block,       // once a block, by its first warp
};
struct AddedPart {
  const Cluster* profile = nullptr; // numbers are of the same sites
  PartOf of = PartOf::block;
};

struct Technique {
  std::vector<SiteChange> sites; // by number; empty: nothing changes
  // Of a block; all its warps meet at each.
  double branch_syncs = 0;
  // Of a scheduler: so many are active at a time. The others that are resident wait for their turn or for global
  // memory.
  double active_warps = HUGE_VAL;
  std::vector<AddedWarp> added_warps;
  std::vector<AddedPart> parts;              // in the CPI stack they are Cause::linear
  std::shared_ptr<const RunAhead> run_ahead; // warps that take from queues; null: there are none
  // Clocks by warp, by cause: exposed whatever other warps issue. (What they can hide is SiteChange::early_stall.)
  CauseClocks stalls{};
  // Of the whole launch: clocks of SMs' units and ports (memory_port, added rows of Cause), machine instructions that
  // warps issue in addition, and bytes.
  CauseClocks demands{};
  double instructions = 0;
  double l2_bytes = 0, dram_read_bytes = 0, dram_write_bytes = 0;
  // Of the whole launch, beside those of the instructions; negative: fewer.
  ir::EventCounts events{};
  // What all that was made from; the model only hands it on.
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
