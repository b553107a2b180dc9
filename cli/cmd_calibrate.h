// `ptxrewrite bench --calibrate`: measures the figures of the present GPU and writes them as a machine file.
#pragma once

#include "cli/command.h"
#include "evaluate/launches/launch_input.h"

#include <string>
#include <vector>

namespace ptxrewrite::cli {

struct CalibrateOptions {
  std::string output;   // machine file to write; "" if there is no calibration
  std::string base;     // machine to start from; "": the closest to the GPU
  std::string rehearse; // machine whose times by the model replace those of a GPU; "" if none
  double noise = 0.01;  // of these times, relative
  double length = 1;    // factor for the length of probes
  bool all_figures = false;
};

void add_calibrate_options(Options& command, CalibrateOptions& options);
// Describes a contradiction between the options; "" if there is none.
std::string contradiction(const CalibrateOptions& options);
// `files`: launch files whose kernels are used to validate the estimates.
int run_calibration(const CalibrateOptions& options, const std::vector<std::string>& files,
                    const LaunchInputOptions& input, unsigned rounds, bool json, const Session& session);

} // namespace ptxrewrite::cli
