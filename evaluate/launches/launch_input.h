// From what the user names (a launch file, or a PTX file with --grid, --block, --arg) to a plan and the module it is
// for, checked against each other.
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
  std::string cluster;                // blocks of a cluster; "": as the kernel says
  bool any() const { return !grid.empty() || !block.empty() || !cluster.empty() || !arguments.empty(); }
};

struct LaunchInputOptions {
  std::string size;
  std::string target;        // which of a launch file's PTX files
  std::string ptx;           // in the place of the launch file's own
  std::string kernels = "*"; // launches of others are left out
  DirectLaunch direct;
};

// What does not fit together in the files and these options; "" if all does.
std::string contradiction_of_files(const std::vector<std::string>& files, const LaunchInputOptions& options);

struct LaunchInput {
  launch::LaunchPlan plan;
  std::unique_ptr<ir::Module> module;
  std::optional<launch::SideFile> side_file; // beside the module, if there is one
};

// Reads everything; what is wrong goes to standard error.
std::optional<LaunchInput> read_launch_input(const std::string& path, const LaunchInputOptions& options,
                                             const Console& console);

// The launch file that a PTX file and options stand for.
std::string direct_launch_text(const std::string& ptx_path, const std::string& kernel, const DirectLaunch& direct);

// Shows an error of run_plan with the file it is about.
void show_session_error(const Error& error, cuda::ErrorPlace place, const LaunchInput& input, const Console& console);

} // namespace ptxrewrite::evaluate
