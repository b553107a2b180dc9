// Walks one warp alone through an in-order pipeline with a scoreboard: issued instructions and waits of a cluster.
#pragma once

#include "emulator/timing/technique.h"

#include <vector>

namespace ptxrewrite::timing {

// Instructions issued without waiting, and the wait after them.
struct IssueInterval {
  float issued = 0;           // machine instructions
  float stall = 0;            // clocks
  float miss_lines = 0;       // requested from L2 by divergent loads
  uint32_t producer = 0;      // number of the instruction that is waited for
  Cause early = Cause::count; // the cause of a technique's wait (SiteChange::early_cause); count: no such wait
};

struct Walk {
  std::vector<IssueInterval> intervals;
  std::vector<uint32_t> phase_ends; // intervals before each barrier; the last entry is the end of all
  double issued = 0, stalls = 0;
  double beside = 0;       // of `issued`: beside other warps' instructions
  double before_parts = 0; // of `issued`: before the first instruction that reads a part (Technique::parts)
  double scale = 1;        // length of the warp relative to the steps walked
};

// The latency of a load of global or shared memory and its requests to L2, by number.
struct LoadTime {
  double latency = 0;
  double miss_lines = 0;
  bool divergent = false; // more than one line per access
};

// `rate`: instructions per clock of a scheduler.
Walk walk(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads, double rate,
          const Technique& technique = {});
// The clocks at which a warp that runs alone has issued each step.
std::vector<double> issue_clocks(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads,
                                 double rate);

} // namespace ptxrewrite::timing
