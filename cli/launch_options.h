// Command-line options of a launch: the size and target of a launch file, or grid, block and arguments directly.
#pragma once

#include "cli/options.h"
#include "evaluate/launches/launch_input.h"

namespace ptxrewrite::cli {

// --size and --target.
void add_launch_input_options(Options& command, LaunchInputOptions& options);
// --grid, --block, --shared and --arg, for PTX files that have no launch file.
void add_direct_launch_options(Options& command, DirectLaunch& direct);

} // namespace ptxrewrite::cli
