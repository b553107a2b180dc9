#include "evaluate/score/benchmark_slice.h"

#include "launch/launch_file.h"

#include <algorithm>

namespace ptxrewrite::evaluate {
namespace {

uint64_t most_threads(const launch::LaunchPlan& plan) {
  uint64_t most = 1;
  for (const launch::Launch& launch : plan.launches)
    most = std::max(most, launch.grid.count() * launch.block.count());
  return most;
}

} // namespace

uint32_t benchmark_slice(const launch::LaunchPlan& plan, uint32_t sms) {
  Diagnostics ignored; // the plan was made from the same text
  const std::optional<launch::LaunchFile> file = launch::read_launch_file(plan.source, ignored);
  const auto benchmark = file ? launch::make_plan(*file, {.size = "paper", .target = {}}, ignored) : std::nullopt;
  if (!benchmark) return 1;
  const uint64_t times = most_threads(*benchmark) / most_threads(plan);
  return static_cast<uint32_t>(std::clamp<uint64_t>(times, 1, sms));
}

} // namespace ptxrewrite::evaluate
