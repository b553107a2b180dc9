// Finds the allocations that a launch reads or writes, by running it on a separate device with an observer.
#pragma once

#include "evaluate/launches/launch_input.h"

#include <vector>

namespace ptxrewrite::evaluate {

// For each buffer and variable of the plan: is it accessed, or does an argument point into it?
struct TouchedMemory {
  std::vector<bool> buffers, variables;
};

// Fails like run_plan. A fault of the kernel is not an error; accesses before the fault count.
Result<TouchedMemory> touched_memory(const LaunchInput& input);

} // namespace ptxrewrite::evaluate
