// Runs a launch plan on a device: buffers are made and filled, the launches run in order, outputs are fetched.
#pragma once

#include "cli/device.h"
#include "launch/variants.h"

#include <functional>

namespace ptxrewrite::cli {

// What an error's range points into.
enum class ErrorPlace : uint8_t { launch_file, module };

struct SessionOptions {
  // Called before each launch; false leaves the rest out.
  std::function<bool(size_t index, const launch::Launch&)> before_launch;
  // Chooses the entry that runs in a kernel's place; nullptr: the kernels that the plan names.
  const launch::Variants* variants = nullptr;
  // What buffers hold in the beginning, by index in the plan, when it was made before; nullptr: it is made now.
  const std::vector<std::vector<std::byte>>* contents = nullptr;
  bool keep_runs = true;  // SessionResult::runs; else only the last one's
  bool fetch_all = false; // buffers that are no output, too
  ErrorPlace* error_place = nullptr;
};

// One launch of the plan as it ran.
struct SessionRun : KernelRun {
  size_t launch = 0;                // index in the plan
  std::string entry;                // that ran
  std::vector<std::string> reasons; // why variants of it did not
};

struct SessionResult {
  std::vector<SessionRun> runs;                // one per launch that ran
  std::vector<std::vector<std::byte>> buffers; // by index in the plan, as they are in the end; empty if not fetched
  std::vector<std::vector<std::byte>> variables;
  std::optional<size_t> failed_launch; // index of the launch whose run has a failure: the last that ran
};

// Do the buffers of a plan fit the machine's memory so many times over? Without asking, the machine would find out
// late.
Status check_memory(const launch::LaunchPlan& plan, unsigned copies);

// Errors: memory, contents that cannot be made, arguments that do not fit, instructions that the device does not have.
// A fault of a kernel is no error: see SessionResult::failed_launch; buffers are then empty where they cannot be read.
Result<SessionResult> run_plan(const launch::LaunchPlan& plan, const ir::Module& module, Device& device,
                               const SessionOptions& options = {});

} // namespace ptxrewrite::cli
