// What running ahead wins or costs, by a small static model: clocks that an SM takes for one trip of all its resident
// warps, the most of what issue, memory bandwidth and one warp's dependent chain take.
//
// Loads that run ahead are taken to miss the caches whenever they come to another sector, and one trip's loads to
// overlap. What a launch makes of it (trips, caches, other kernels) the model does not know.
#pragma once

#include "ir/machine/lowering.h"
#include "ir/machine/machine.h"
#include "transforms/legal/run_ahead_plan.h"
#include "transforms/legal/run_ahead_rewrite.h"

#include <string>

namespace ptxrewrite::transforms::legal {

// One trip of a loop, by one warp.
struct TripWork {
  double instructions = 0;    // of the machine
  double ahead_latency = 0;   // clocks that the loads of the plan take, if they are waited for
  double staying_latency = 0; // the same of all other loads
  double bytes = 0;           // that come from DRAM
};

struct RunAheadEstimate {
  double before = 0, after = 0; // clocks for a trip of all resident warps; what comes in front of the loop shared out
  unsigned warps_before = 0, warps = 0; // resident
  bool wins() const;
  std::string text() const; // "312 to 140 clocks a trip with 32 warps"
};

// Clocks for one trip of `warps` warps, of which `hidden` clocks of ahead_latency are spent elsewhere.
double trip_clocks(const ir::Machine& machine, const TripWork& work, unsigned warps, double hidden);

class RunAheadCost {
public:
  // `threads` of a block; `shared_bytes` that a block has already.
  RunAheadCost(const ir::LinearForms& forms, const ir::Machine& machine, unsigned threads, uint64_t shared_bytes);

  RunAheadEstimate estimate(const RunAheadPlan& plan, const RunAheadChoice& choice) const;

private:
  TripWork work_of(const RunAheadPlan& plan) const;
  double latency_of(const RunAheadLoad& load, double& bytes) const;
  double slice_instructions(const RunAheadPlan& plan) const;
  unsigned warps_with(uint32_t registers, uint64_t shared_bytes) const;

  const ir::LinearForms& forms_;
  const ir::Function& function_;
  const ir::Machine& machine_;
  unsigned threads_;
  uint64_t shared_bytes_;
  ir::Lowering lowering_;
  uint32_t registers_;
};

} // namespace ptxrewrite::transforms::legal
