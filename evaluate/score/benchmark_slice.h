// Slices of a machine for papers whose benchmarks have larger grids than our samples' sizes.
#pragma once

#include "launch/launch_plan.h"

#include <cstdint>

namespace ptxrewrite::evaluate {

// One in how many slices of a machine of `sms` SMs the plan's largest launch is as dense on as the launch file's size
// `paper`, the benchmark's own, is on the whole machine. 1, which is the whole: where the benchmark's grid is no
// larger, and where the launch file has no such size.
uint32_t benchmark_slice(const launch::LaunchPlan& plan, uint32_t sms);

} // namespace ptxrewrite::evaluate
