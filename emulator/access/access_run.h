// Runs of accesses: straight code whose loads and stores have common base registers, as in unrolled loops. Bounds,
// alignment and the distances between lanes are checked once for each base register, in front of the run.
#pragma once

#include "emulator/access/warp_access.h"
#include "emulator/core/program.h"

#include <optional>

namespace ptxrewrite::emulator {

// What the search for runs has to know about a micro-operation.
struct RunnableOp {
  enum Kind : uint8_t {
    other,  // ends a run
    plain,  // computes registers from registers, then continues with the next micro-operation
    access, // a load or store of one element for each lane
  };
  Kind kind = other;
  bool stores = false;      // of an access, and so on:
  bool narrow_base = false; // 32-bit addresses
  uint8_t bytes = 4;
};

// Makes the leader (first access) of each run of the function: handler_for(leader) is its new handler, which calls
// run_accesses(). All other micro-operations stay as they are, so that a warp may continue anywhere.
using DescribeRunnable = RunnableOp (*)(const MicroOp& op);
void lead_runs(DecodedFunction& function, DescribeRunnable describe, Handler (*handler_for)(const RunnableOp& leader));

// Executes the run that starts at `leader` and returns the micro-operation after the run. If any access of the run may
// be out of bounds or unaligned, it executes nothing and returns nullptr; the caller then executes the leader alone.
const MicroOp* run_accesses(Warp& warp, const MicroOp& leader);

} // namespace ptxrewrite::emulator
