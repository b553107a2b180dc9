// Options that select the device for kernels (`run`, `verify`).
#pragma once

#include "cli/machine_choice.h"
#include "cuda/device.h"

#include <memory>
#include <string>

namespace ptxrewrite::cli {

struct DeviceOptions {
  std::string device = "emulator";
  bool device_given = false;
  unsigned host_threads = 0;
  std::string gpu; // machine name
};

void add_device_options(Options& command, DeviceOptions& options);
// Adds --fuel, --memory, --engine and --matrix-sums, for all commands that run kernels on the emulator. They set
// emulator_limits(), default_engine() and default_matrix_sums().
void add_limit_options(Options& command);
// Adds --gpu, for commands that run hardware forms. `default_text`: describes the default in --help.
void add_machine_option(Options& command, DeviceOptions& options, const std::string& default_text);

// The machine that the emulator simulates.
MachineChoice machine_of(const DeviceOptions& options, const std::string& command, const Session& session);

// Opens the GPU if one is selected; returns nullptr for the emulator. Fails if there is no GPU (exit_no_gpu).
Result<std::unique_ptr<cuda::Device>> open_gpu(const DeviceOptions& options);

} // namespace ptxrewrite::cli
