// Simpler ways to estimate a launch, from the same counters, recording, caches and machine as the interval model: what
// it has to beat.
//
//  * counting instructions: issue slots alone
//  * roofline: the largest of all demands over their capacities; nothing waits
//  * MWP-CWP: the closed formula of Hong and Kim, "An Analytical Model for a GPU Architecture with Memory-level and
//    Thread-level Parallelism Awareness" (ISCA 2009), section 3
//
// All three add what a launch costs, as the interval model does.
#pragma once

#include "emulator/timing/model.h"

namespace ptxrewrite::timing {

// The terms of Hong and Kim's formula by their meaning. Means of a warp, clocks of one issue port: where an SM has
// several schedulers, each is taken for an SM of its own with its share of the warps.
struct MwpCwpInput {
  double warps = 1;                 // N: active ones of an issue port
  double ports = 1;                 // active SMs
  double repetitions = 1;           // #Rep: how often a port is filled with blocks
  double issue_clocks = 1;          // of an instruction
  double instructions = 0;          // memory instructions included
  double coalesced = 0;             // memory instructions: one transaction each
  double uncoalesced = 0;           // of several
  double transactions = 1;          // of an uncoalesced one
  double barriers = 0;              // executed by a warp
  double blocks = 1;                // active ones of a port
  double latency = 0;               // clocks of one transaction
  double coalesced_departure = 1;   // clocks between two transactions of different warps
  double uncoalesced_departure = 1; // and between two of one
  double bytes = 0;                 // that memory moves for one memory instruction
  double bandwidth = 1;             // bytes per clock of the whole chip
};
struct MwpCwp {
  double mwp = 0, cwp = 0;
  double clocks = 0; // with barriers
};
MwpCwp mwp_cwp(const MwpCwpInput& input);
// What a launch gives the formula. Loads take as long as the level that their last sector comes from, so that the
// formula knows caches, which its paper's machines did not have.
MwpCwpInput mwp_cwp_input(const ModelInput& input, const Demand& demand);

struct Estimates {
  double instructions = 0, roofline = 0, mwp_cwp = 0; // clocks
  void add(const Estimates& other) {
    instructions += other.instructions, roofline += other.roofline, mwp_cwp += other.mwp_cwp;
  }
};
Estimates estimates_of(const ModelInput& input, const Demand& demand);

} // namespace ptxrewrite::timing
