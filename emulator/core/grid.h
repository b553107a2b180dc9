// Runs all blocks of a launch, on one host thread or several.
#pragma once

#include "emulator/core/program.h"

namespace ptxrewrite::emulator {

class MachineRun;

// `machine`: the machine that the launch runs on; nullptr: none.
Result<LaunchResult> run_grid(KernelImage& image, const LaunchRequest& request, DeviceMemory& memory,
                              MachineRun* machine = nullptr);

} // namespace ptxrewrite::emulator
