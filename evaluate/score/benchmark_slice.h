// Slices of a machine for papers whose benchmarks have larger grids than the samples.
#pragma once

#include "launch/launch_plan.h"

#include <cstdint>

namespace ptxrewrite::evaluate {

// Returns n such that the plan's largest launch is as dense on 1/n of a machine with `sms` SMs as the launch file's
// size `paper`, that of the benchmark itself, is on the whole machine. Returns 1, for the whole machine, if the
// benchmark's grid is not larger, or if the launch file has no such size.
uint32_t benchmark_slice(const launch::LaunchPlan& plan, uint32_t sms);

} // namespace ptxrewrite::evaluate
