// The options that say what kernels run on (`run`, `verify`).
#pragma once

#include "cli/command.h"
#include "cli/device.h"

#include <memory>
#include <string>

namespace ptxrewrite::cli {

struct DeviceOptions {
  std::string device = "emulator";
  unsigned host_threads = 0;
};

void add_device_options(CLI::App& command, DeviceOptions& options);

// Opens the GPU if it is wanted; nullptr where the emulator is. Error: there is none here (exit_no_gpu).
Result<std::unique_ptr<Device>> open_gpu(const DeviceOptions& options);

} // namespace ptxrewrite::cli
