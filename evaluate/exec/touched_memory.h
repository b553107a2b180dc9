// Which allocations a launch reads or writes, by running it on a device of its own with an observer.
#pragma once

#include "evaluate/launches/launch_input.h"

#include <vector>

namespace ptxrewrite::evaluate {

// For each buffer of the plan, and for each of its variables: is it accessed, or does an argument point into it?
struct TouchedMemory {
  std::vector<bool> buffers, variables;
};

// Errors: as run_plan. A fault of the kernel is none; what it touched before counts.
Result<TouchedMemory> touched_memory(const LaunchInput& input);

} // namespace ptxrewrite::evaluate
