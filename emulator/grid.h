// Runs all blocks of a launch, on one host thread or several.
#pragma once

#include "emulator/program.h"

namespace ptxrewrite::emulator {

Result<LaunchResult> run_grid(KernelImage& image, const LaunchRequest& request, DeviceMemory& memory);

} // namespace ptxrewrite::emulator
