// Runs a sample's launch file on the emulator. All failures are thrown as std::runtime_error.
#pragma once

#include "ir/core/module.h"
#include "launch/launch_plan.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

using Bytes = std::vector<std::byte>;

// The plan of samples/NAME/NAME.toml for a size; "": the file's default.
launch::LaunchPlan sample_plan(const std::string& name, const std::string& size);

// The module of a plan's PTX file.
std::unique_ptr<ir::Module> sample_module(const launch::LaunchPlan& plan);

// Do all launches name kernels of the module, with arguments of their parameters' sizes?
void check_launches(const launch::LaunchPlan& plan, const ir::Module& module);

// Contents of the plan's buffers before the first launch, in their order.
std::vector<Bytes> initial_buffers(const launch::LaunchPlan& plan);

// Contents that the plan gives to variables of the module, by name.
std::map<std::string, Bytes> initial_variables(const launch::LaunchPlan& plan);

struct EmulatedRun {
  std::vector<Bytes> buffers; // after the last launch
  uint64_t thread_instructions = 0;
};

// Runs all launches in check mode. Findings are thrown like faults.
EmulatedRun emulate(const launch::LaunchPlan& plan, const ir::Module& module);

} // namespace ptxrewrite::tests
