// What running ahead wins or costs, by a small static model: clocks that an SM takes for one trip of all its resident
// warps, the most of what issue, memory bandwidth and one warp's dependent chain take.
//
// Loads that run ahead are taken to miss the first-level cache whenever they come to another sector; what other threads
// or blocks read too (the address leaves out an index that the kernel uses) is in the second level, the rest comes from
// DRAM. One trip's loads overlap. How many trips and blocks there will be the model does not know: ten, and enough to
// fill the machine.
#pragma once

#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"
#include "transforms/dac/run_ahead_plan.h"
#include "transforms/dac/run_ahead_rewrite.h"

#include <array>
#include <cstdint>

namespace ptxrewrite::transforms::legal {

// One trip of a loop, by one warp.
struct TripWork {
  double instructions = 0;    // of the machine
  double ahead_latency = 0;   // clocks that the loads of the plan take, if they are waited for
  double staying_latency = 0; // the same of all other loads
  double dram_bytes = 0;      // that come from there
  double l2_bytes = 0;        // that come from the second-level cache, whether it has to fetch them or not
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
  // `threads` of a block; `shared_bytes` that a block has already; `most_warps` where a launch is known to have no more
  // for an SM, 0 else.
  RunAheadCost(const ir::LinearForms& forms, const ir::Machine& machine, unsigned threads, uint64_t shared_bytes,
               unsigned most_warps);

  // `more_shared`: bytes that the form needs for a block.
  RunAheadEstimate estimate(const RunAheadPlan& plan, const RunAheadChoice& choice, uint64_t more_shared) const;

private:
  TripWork work_of(const RunAheadPlan& plan) const;
  double latency_of(const RunAheadLoad& load, TripWork& work) const;
  bool is_shared_with_others(const ir::LinearForm& form) const;
  double slice_instructions(const RunAheadPlan& plan) const;
  unsigned warps_with(unsigned threads, uint32_t registers, uint64_t shared_bytes) const;

  const ir::LinearForms& forms_;
  const ir::Function& function_;
  const ir::Machine& machine_;
  unsigned threads_;
  uint64_t shared_bytes_;
  unsigned most_warps_;
  std::array<bool, ir::FormIndex::count> indices_read_{}; // by the kernel
  ir::Lowering lowering_;
  uint32_t registers_;
};

} // namespace ptxrewrite::transforms::legal
