// The producer warp (sm_90): one warp more in the block walks ahead of a loop and has whole rows brought to shared
// memory by bulk copies, as DAC's affine warp would.
//
//     k__dac<<<grid, threads + 32>>>
//       thread 0 initialises two mbarriers a stage: full and empty; the block waits
//       the last warp:  each trip: wait until the stage is empty; expect the row's bytes; bulk copies
//       the others:     each trip: wait until the stage is full; the loads read their slot; arrive at empty
//
// The block is one row for the machine; %tid and %ntid are computed from what they were, and barriers count the threads
// that there were.
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
  ir::EdgeId entry;  // the only way into it
  RunAheadSlice preamble;
  unsigned stages = 2;
  unsigned threads = 0; // slots for so many threads of a block, a multiple of 32
  bool several_dimensions = false;
  std::vector<MemoryClaim> claims; // what the launch has to check of rows and blocks
};

// At most so many threads of the original block: the producer makes it 1,024.
constexpr unsigned most_consumers = 992;

// Bytes of shared memory that a block needs.
uint64_t producer_bytes(const ProducerPlan& producer);

// Can a producer warp serve this loop? Fills in all but `plan`, `stages` and `threads`. Empty: yes, under the claims.
std::string check_producer(ir::LinearForms& forms, const RunAheadPlanner& planner, ProducerPlan& producer);

// Of a try's function as it was planned.
void rewrite_with_producer(Attempt& attempt, const ProducerPlan& producer);

} // namespace ptxrewrite::transforms::legal
