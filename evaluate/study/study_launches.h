// The launches of a plan, one pass for each machine that a study runs them on, and what they cost.
#pragma once

#include "evaluate/launches/launch_input.h"

#include <functional>
#include <optional>

namespace ptxrewrite::evaluate {

struct LaunchPass {
  double seconds = 0;                       // of the processor, in launches
  std::optional<emulator::Failure> failure; // the rest did not run
};

// All launches of the plan with the kernels of `module` (its own, or what was made of it), by their names. `finished`
// is called after each, and is part of its cost. With `variants`, the entries that they choose. Errors: as run_plan.
Result<LaunchPass> run_launches(const LaunchInput& input, const ir::Module& module,
                                const cuda::EmulatorOptions& options, cuda::ErrorPlace& place,
                                const std::function<void(const cuda::SessionRun&)>& finished,
                                const launch::Variants* variants = nullptr);

} // namespace ptxrewrite::evaluate
