// The options that say what kernels run on (`run`, `verify`).
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
  std::string gpu; // name of a machine
};

void add_device_options(Options& command, DeviceOptions& options);
// --fuel and --memory, for all commands that run kernels on the emulator. They go to emulator_limits().
void add_limit_options(Options& command);
// --gpu, for what runs hardware forms. `default_text`: what is true without it.
void add_machine_option(Options& command, DeviceOptions& options, const std::string& default_text);

// The machine that the emulator stands for.
MachineChoice machine_of(const DeviceOptions& options, const std::string& command, const Session& session);

// Opens the GPU if it is wanted; nullptr where the emulator is. Error: there is none here (exit_no_gpu).
Result<std::unique_ptr<cuda::Device>> open_gpu(const DeviceOptions& options);

} // namespace ptxrewrite::cli
