// The options that say what kernels run on (`run`, `verify`).
#pragma once

#include "cli/command.h"
#include "cuda/device.h"
#include "ir/machine/figures/machine.h"

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

// What a name of a machine stands for.
struct MachineChoice {
  const ir::Machine* machine = nullptr; // nullptr: none is named
  int code = exit_ok;                   // what the command returns where something was wrong: it was shown
};
// A machine by its name, a target ("sm_80"), or the path of a file with one (machine_file.h), which then lives as long
// as the program.
MachineChoice find_machine(const std::string& command, const std::string& name, const Session& session);
// The machine that the emulator stands for.
MachineChoice machine_of(const DeviceOptions& options, const std::string& command, const Session& session);

// Opens the GPU if it is wanted; nullptr where the emulator is. Error: there is none here (exit_no_gpu).
Result<std::unique_ptr<cuda::Device>> open_gpu(const DeviceOptions& options);

} // namespace ptxrewrite::cli
