// Settings that `ptxrewrite exec --device cuda` passes to the interposed driver in the program's environment.
#pragma once

#include "cuda/context/settings.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::cuda::interpose {

struct GpuSettings {
  std::string passes;      // a pipeline; "": modules are not rewritten
  std::string report;      // path of the JSON report; "" if none
  uint64_t specialise = 0; // number of equal launches by which a kernel is specialised for them; 0: never
  bool autotune = false;
  LogLevel log_level = LogLevel::warn;

  bool changes_kernels() const { return !passes.empty() || specialise > 0; }
};

// The settings as NAME=VALUE, for gpu_settings_from_environment.
std::vector<std::string> environment_of(const GpuSettings& settings);
// With PTXREWRITE_DISABLE=1, modules are not rewritten.
GpuSettings gpu_settings_from_environment();

} // namespace ptxrewrite::cuda::interpose
