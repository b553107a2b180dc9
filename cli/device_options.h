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

// Is there such a device? Says so on standard error if not.
bool is_available(const DeviceOptions& options, const std::string& command);

} // namespace ptxrewrite::cli
