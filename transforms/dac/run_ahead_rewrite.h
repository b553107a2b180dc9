// Rewrites loops so that their loads run ahead.
//
// The slice of a loop (run_ahead_plan.h) is computed `distance` trips before the loop reaches them, with a predicate
// that says whether that trip will be executed: before the loop for the first trips, and at the head of each trip for
// the one that is `distance` later. The form defines how the addresses are used there.
#pragma once

#include "ir/core/function.h"
#include "transforms/dac/run_ahead_plan.h"

#include <cstdint>
#include <string_view>

namespace ptxrewrite::transforms::legal {

enum class RunAheadForm : uint8_t {
  ring,      // cp.async into a ring of slots in shared memory, each thread's own; the load reads its slot
  registers, // loaded into registers, which are passed on from trip to trip
  prefetch,  // prefetch.global.L2; the load itself stays
  producer,  // an additional warp copies rows to shared memory: run_ahead_producer.h
};
std::string_view spelling(RunAheadForm form);

struct RunAheadChoice {
  RunAheadForm form = RunAheadForm::ring;
  unsigned distance = 1;
  unsigned threads = 0; // ring: number of slots, the threads of a block
};

// Bytes of shared memory for a block's ring.
uint64_t ring_bytes(const RunAheadPlan& plan, const RunAheadChoice& choice);

// Rewrites all loads of the plan with a choice other than `producer`. The function must be as it was when planned,
// except for the rewriting of other loops.
void rewrite_run_ahead(ir::Function& function, const RunAheadPlan& plan, const RunAheadChoice& choice);

} // namespace ptxrewrite::transforms::legal
