// Turns the user's input (a launch file, or a PTX file with --grid, --block, --arg) into a plan and its module, and
// checks that they fit.
#pragma once

#include "cuda/session.h"
#include "ir/core/module.h"
#include "launch/launch_file.h"
#include "launch/side_file.h"
#include "support/text/console.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// A launch given on the command line.
struct DirectLaunch {
  std::string grid;
  std::string block;
  std::string shared = "0";
  std::vector<std::string> arguments; // "s32=5", "buffer=f32:1024:uniform(-1,1,seed=1):out"
  std::string cluster;                // blocks per cluster; "": the kernel's own cluster size
  bool any() const { return !grid.empty() || !block.empty() || !cluster.empty() || !arguments.empty(); }
};

struct LaunchInputOptions {
  std::string size;
  std::string target;        // selects one of a launch file's PTX files
  std::string ptx;           // replaces the launch file's own PTX file
  std::string kernels = "*"; // glob; launches of other kernels are skipped
  DirectLaunch direct;
};

// Describes a contradiction between the files and these options; "" if there is none.
std::string contradiction_of_files(const std::vector<std::string>& files, const LaunchInputOptions& options);

struct LaunchInput {
  launch::LaunchPlan plan;
  std::unique_ptr<ir::Module> module;
  std::optional<launch::SideFile> side_file; // the side file beside the module, if any
};

// Reads all input; shows errors on standard error and returns nothing if there are any.
std::optional<LaunchInput> read_launch_input(const std::string& path, const LaunchInputOptions& options,
                                             const Console& console);

// The launch file equivalent to a PTX file with options.
std::string direct_launch_text(const std::string& ptx_path, const std::string& kernel, const DirectLaunch& direct);

// Shows an error of run_plan with the file it refers to.
void show_session_error(const Error& error, cuda::ErrorPlace place, const LaunchInput& input, const Console& console);

} // namespace ptxrewrite::evaluate
