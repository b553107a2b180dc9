// Runs a launch plan on a device: buffers are made and filled, the launches run in order, outputs are fetched.
#pragma once

#include "cli/device.h"

#include <functional>

namespace ptxrewrite::cli {

struct SessionOptions {
  // Called before each launch; false leaves the rest out.
  std::function<bool(size_t index, const launch::Launch&)> before_launch;
  // Another entry than the plan's, and its parameters: for rewritten kernels. Empty: the launch as planned.
  std::function<std::string(const launch::Launch&)> choose_kernel;
  bool keep_runs = true;  // SessionResult::runs; else only the last one's
  bool fetch_all = false; // buffers that are no output, too
};

struct SessionResult {
  std::vector<KernelRun> runs;                 // one per launch that ran
  std::vector<std::vector<std::byte>> buffers; // by index in the plan, as they are in the end; empty if not fetched
  std::vector<std::vector<std::byte>> variables;
  std::optional<size_t> failed_launch; // index of the launch whose run has a failure: the last that ran
};

// Errors: memory, contents that cannot be made, arguments that do not fit, instructions that the device does not have.
// A fault of a kernel is no error: see SessionResult::failed_launch.
Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options = {});

// The parameter bytes of a launch for `kernel`: arguments at the natural alignment of the kernel's parameters.
Result<std::vector<std::byte>> pack_parameters(const launch::Launch& launch, const ir::Module& module,
                                               std::string_view kernel, const launch::DeviceAddresses& addresses);

} // namespace ptxrewrite::cli
