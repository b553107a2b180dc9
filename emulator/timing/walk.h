// A lone warp on an in-order pipeline with a scoreboard: what a cluster's sequence issues, and where it waits for what.
#pragma once

#include "emulator/timing/technique.h"

#include <vector>

namespace ptxrewrite::timing {

// What is issued without waiting, and the wait behind it.
struct IssueInterval {
  float issued = 0;           // machine instructions
  float stall = 0;            // clocks
  float miss_lines = 0;       // lines that its divergent loads ask L2 for
  uint32_t producer = 0;      // the instruction that is waited for, by its number
  Cause early = Cause::count; // the wait is a technique's, for this (SiteChange::early_cause)
};

struct Walk {
  std::vector<IssueInterval> intervals;
  std::vector<uint32_t> phase_ends; // intervals before a barrier, the last one behind all
  double issued = 0, stalls = 0;
  double beside = 0;       // of what is issued: beside other warps' instructions
  double before_parts = 0; // of what is issued: before the first instruction that takes a part (Technique::parts)
  double scale = 1;        // the warp is so much longer than what was walked
};

// How long a load of global or shared memory takes, and what it asks L2 for, by its number.
struct LoadTime {
  double latency = 0;
  double miss_lines = 0;
  bool divergent = false; // more than one line by access
};

// `rate`: instructions per clock of a scheduler.
Walk walk(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads, double rate,
          const Technique& technique = {});
// Clocks at which a warp that is alone has issued each step.
std::vector<double> issue_clocks(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads,
                                 double rate);

} // namespace ptxrewrite::timing
