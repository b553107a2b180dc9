// `ptxrewrite bench --calibrate`: the figures of the GPU at hand, as a machine file.
#pragma once

#include "cli/command.h"
#include "evaluate/launches/launch_input.h"

#include <string>
#include <vector>

namespace ptxrewrite::cli {

struct CalibrateOptions {
  std::string output;   // machine file to write; "": no calibration
  std::string base;     // machine to begin with; "": the nearest to the GPU
  std::string rehearse; // machine whose times the model gives in the place of a GPU; "": none
  double noise = 0.01;  // of these
  double length = 1;    // of probes
  bool all_figures = false;
};

void add_calibrate_options(Options& command, CalibrateOptions& options);
// What does not fit together in them; "" if all does.
std::string contradiction(const CalibrateOptions& options);
// `files`: launch files whose kernels estimates are compared on.
int run_calibration(const CalibrateOptions& options, const std::vector<std::string>& files,
                    const LaunchInputOptions& input, unsigned rounds, bool json, const Session& session);

} // namespace ptxrewrite::cli
