// What `ptxrewrite exec --device cuda` asks of the interposed driver, by way of the program's environment.
#pragma once

#include "cuda/context/settings.h"

#include <string>
#include <vector>

namespace ptxrewrite::cuda::interpose {

struct GpuSettings {
  std::string passes; // a pipeline; "": nothing is rewritten
  std::string report; // file of the report as JSON; "": none
  bool autotune = false;
  LogLevel log_level = LogLevel::warn;
};

// NAME=VALUE, what gpu_settings_from_environment reads.
std::vector<std::string> environment_of(const GpuSettings& settings);
// With PTXREWRITE_DISABLE=1 nothing is rewritten.
GpuSettings gpu_settings_from_environment();

} // namespace ptxrewrite::cuda::interpose
