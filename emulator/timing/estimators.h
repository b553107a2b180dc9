// Simpler estimates of a launch from the same counters, recording, caches and machine: baselines for the interval
// model.
//
//  * counting instructions: issue slots alone
//  * roofline: the largest of all demands over their capacities; no latencies
//  * MWP-CWP: the closed formula of Hong and Kim, "An Analytical Model for a GPU Architecture with Memory-level and
//    Thread-level Parallelism Awareness" (ISCA 2009), section 3
//
// All three add the launch overhead, as the interval model does.
#pragma once

#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// The terms of Hong and Kim's formula. They are means over warps, in clocks of one issue port: each scheduler of an SM
// counts as an SM of its own with its share of the warps.
struct MwpCwpInput {
  double warps = 1;                 // N: active warps of an issue port
  double ports = 1;                 // active SMs
  double repetitions = 1;           // #Rep: how many times a port is filled with blocks
  double issue_clocks = 1;          // per instruction
  double instructions = 0;          // memory instructions included
  double coalesced = 0;             // memory instructions with one transaction
  double uncoalesced = 0;           // memory instructions with several transactions
  double transactions = 1;          // of an uncoalesced instruction
  double barriers = 0;              // executed by a warp
  double blocks = 1;                // active blocks of a port
  double latency = 0;               // clocks of one transaction
  double coalesced_departure = 1;   // clocks between two transactions of different warps
  double uncoalesced_departure = 1; // and between two transactions of one warp
  double bytes = 0;                 // moved by memory for one memory instruction
  double bandwidth = 1;             // bytes per clock of the whole chip
};
struct MwpCwp {
  double mwp = 0, cwp = 0;
  double clocks = 0; // with barriers
};
MwpCwp mwp_cwp(const MwpCwpInput& input);
// The formula's input for a launch. The latency of a load is that of the level that delivers its last sector, which
// adds caches to the formula; the machines of its paper had none.
MwpCwpInput mwp_cwp_input(const ModelInput& input, const Demand& demand);

struct Estimates {
  double instructions = 0, roofline = 0, mwp_cwp = 0; // clocks
  void add(const Estimates& other) {
    instructions += other.instructions, roofline += other.roofline, mwp_cwp += other.mwp_cwp;
  }
};
Estimates estimates_of(const ModelInput& input, const Demand& demand);

} // namespace ptxrewrite::timing
