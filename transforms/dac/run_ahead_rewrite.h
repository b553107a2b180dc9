// Writes loops whose loads run ahead.
//
// The slice of a loop (run_ahead_plan.h) is computed `distance` trips before the loop gets there, with a predicate that
// says whether that trip will be: in front of the loop for the first trips, at the head of each trip for the one that
// is so much later. What is done there with the addresses is the form.
#pragma once

#include "ir/core/function.h"
#include "transforms/dac/run_ahead_plan.h"

#include <cstdint>
#include <string_view>

namespace ptxrewrite::transforms::legal {

enum class RunAheadForm : uint8_t {
  ring,      // cp.async into a ring of slots in shared memory, each thread's own; the load reads its slot
  registers, // loaded into registers, which are handed on from trip to trip
  prefetch,  // prefetch.global.L2; the load stays as it is
  producer,  // a warp of its own has rows copied to shared memory: run_ahead_producer.h
};
std::string_view spelling(RunAheadForm form);

struct RunAheadChoice {
  RunAheadForm form = RunAheadForm::ring;
  unsigned distance = 1;
  unsigned threads = 0; // ring: slots for so many threads of a block
};

// Bytes of shared memory that a block's ring needs.
uint64_t ring_bytes(const RunAheadPlan& plan, const RunAheadChoice& choice);

// All loads of the plan, one choice other than `producer`. The function must be as it was planned but for other loops'
// rewriting.
void rewrite_run_ahead(ir::Function& function, const RunAheadPlan& plan, const RunAheadChoice& choice);

} // namespace ptxrewrite::transforms::legal
