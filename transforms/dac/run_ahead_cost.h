// The gain or cost of running ahead, by a small static model: the clocks that an SM takes for one trip of all its
// resident warps, as the maximum of issue time, memory bandwidth and one warp's dependent chain.
//
// Loads that run ahead are assumed to miss the first-level cache whenever they reach a new sector. Data that other
// threads or blocks also read (the address does not depend on an index that the kernel uses) hits in the second level;
// other data comes from DRAM. The loads of one trip overlap. The model assumes ten trips and enough blocks to fill the
// machine, because these numbers are unknown.
#pragma once

#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"
#include "transforms/dac/run_ahead_plan.h"
#include "transforms/dac/run_ahead_rewrite.h"

#include <array>
#include <cstdint>
#include <memory>

namespace ptxrewrite::transforms::legal {

// One trip of a loop, by one warp.
struct TripWork {
  double instructions = 0;    // machine instructions
  double ahead_latency = 0;   // clocks for the loads of the plan, if the warp waits for them
  double staying_latency = 0; // the same for all other loads
  double dram_bytes = 0;      // bytes that come from DRAM
  double l2_bytes = 0;        // bytes that come from the second-level cache, whether they hit there or not
};

struct RunAheadEstimate {
  double before = 0, after = 0; // clocks for a trip of all resident warps; code before the loop is distributed over the
                                // trips
  unsigned warps_before = 0, warps = 0; // resident
  bool wins() const;
  std::string text() const; // "312 to 140 clocks a trip with 32 warps"
};

// Clocks for one trip of `warps` warps, if `hidden` clocks of ahead_latency overlap with other work.
double trip_clocks(const ir::Machine& machine, const TripWork& work, unsigned warps, double hidden);

class RunAheadCost {
public:
  // `lowering`: of the kernel for the machine; `threads` per block; `shared_bytes`: shared memory that a block already
  // uses.
  RunAheadCost(const ir::LinearForms& forms, const ir::Machine& machine, std::shared_ptr<const ir::Lowering> lowering,
               unsigned threads, uint64_t shared_bytes);

  // For launches with at most this number of warps on an SM; 0: as many as fit.
  void limit_warps(unsigned most_warps) { most_warps_ = most_warps; }

  // `more_shared`: additional bytes of shared memory per block for the form.
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
  unsigned most_warps_ = 0;
  std::array<bool, ir::form_index::count> indices_read_{}; // by the kernel
  std::shared_ptr<const ir::Lowering> lowering_;
  uint32_t registers_;
};

} // namespace ptxrewrite::transforms::legal
