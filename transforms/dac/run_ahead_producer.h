// The producer warp (sm_90): an additional warp of the block runs ahead of a loop and copies whole rows to shared
// memory by bulk copies, as DAC's affine warp would.
//
//     k__dac<<<grid, threads + 32>>>
//       thread 0 initialises two mbarriers a stage: full and empty; the block waits
//       the last warp:  each trip: wait until the stage is empty; expect the row's bytes; bulk copies
//       the others:     each trip: wait until the stage is full; the loads read their slot; arrive at empty
//
// The hardware block is one row; the original %tid and %ntid are computed from it, and barriers count the original
// threads.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "transforms/common/attempt.h"
#include "transforms/dac/run_ahead_memory.h"
#include "transforms/dac/run_ahead_plan.h"

#include <string>
#include <vector>

namespace ptxrewrite::transforms::legal {

struct ProducerPlan {
  RunAheadPlan plan; // of one outermost loop
  ir::EdgeId entry;  // the only entry edge
  RunAheadSlice preamble;
  unsigned stages = 2;
  unsigned threads = 0; // number of slots: the threads of a block, a multiple of 32
  bool several_dimensions = false;
  std::vector<MemoryClaim> claims; // conditions on rows and blocks that the launch must check
};

// Largest number of threads in the original block: the producer warp makes it 1,024.
constexpr unsigned most_consumers = 992;

// Bytes of shared memory per block.
uint64_t producer_bytes(const ProducerPlan& producer);

// Can a producer warp serve this loop? Fills in all fields but `plan`, `stages` and `threads`. Returns why not; empty
// if it can, under the claims.
std::string check_producer(ir::LinearForms& forms, const RunAheadPlanner& planner, ProducerPlan& producer);

// Rewrites the attempt's function, which must be as it was when planned.
void rewrite_with_producer(Attempt& attempt, const ProducerPlan& producer);

} // namespace ptxrewrite::transforms::legal
