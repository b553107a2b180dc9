// A lone warp on an in-order pipeline with a scoreboard: what a cluster's sequence issues, and where it waits for what.
#pragma once

#include "emulator/timing/machine_code.h"

#include <vector>

namespace ptxrewrite::timing {

// What is issued without waiting, and the wait behind it.
struct Interval {
  float issued = 0;      // machine instructions
  float stall = 0;       // clocks
  float miss_lines = 0;  // lines that its divergent loads ask L2 for
  uint32_t producer = 0; // the instruction that is waited for, by its number
};

struct Walk {
  std::vector<Interval> intervals;
  std::vector<uint32_t> phase_ends; // intervals before a barrier, the last one behind all
  double issued = 0, stalls = 0;
  double scale = 1; // the warp is so much longer than what was walked
};

// How long a load of global memory takes, and what it asks L2 for, by its number.
struct LoadTime {
  double latency = 0;
  double miss_lines = 0;
  bool divergent = false; // more than one line by access
};

// `rate`: instructions per clock of a scheduler. `skipped`: by number, the share of executions that warps skip because
// another one's result is theirs, too: they issue so much less and wait for that result; empty: nothing is skipped.
Walk walk(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads, double rate,
          std::span<const double> skipped = {});

} // namespace ptxrewrite::timing
