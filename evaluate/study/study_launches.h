// Runs the launches of a plan, one pass for each machine that a study uses, and measures the cost.
#pragma once

#include "evaluate/launches/launch_input.h"

#include <functional>
#include <optional>

namespace ptxrewrite::evaluate {

struct LaunchPass {
  double seconds = 0;                       // processor time in launches
  std::optional<emulator::Failure> failure; // the remaining launches were not run
};

// Runs all launches of the plan with the kernels of `module` (its own, or a rewritten one), by name. `finished` is
// called after each, and counts as part of its cost. With `variants`, runs the entries that these choose. Fails like
// run_plan.
Result<LaunchPass> run_launches(const LaunchInput& input, const ir::Module& module,
                                const cuda::EmulatorOptions& options, cuda::ErrorPlace& place,
                                const std::function<void(const cuda::SessionRun&)>& finished,
                                const launch::Variants* variants = nullptr);

} // namespace ptxrewrite::evaluate
