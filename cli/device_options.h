// The options that say what kernels run on (`run`, `verify`).
#pragma once

#include "cli/command.h"
#include "cli/device.h"
#include "ir/machine/machine.h"

#include <memory>
#include <string>

namespace ptxrewrite::cli {

struct DeviceOptions {
  std::string device = "emulator";
  unsigned host_threads = 0;
  std::string gpu; // name of a machine
};

void add_device_options(CLI::App& command, DeviceOptions& options);
// --gpu, for what runs hardware forms. `default_text`: what is true without it.
void add_machine_option(CLI::App& command, DeviceOptions& options, const std::string& default_text);

// The machine that the emulator stands for; nullptr: none is named. Error: there is no such machine.
Result<const ir::Machine*> machine_of(const DeviceOptions& options);

// Opens the GPU if it is wanted; nullptr where the emulator is. Error: there is none here (exit_no_gpu).
Result<std::unique_ptr<Device>> open_gpu(const DeviceOptions& options);

} // namespace ptxrewrite::cli
