// Runs all blocks of a launch, on one host thread or several.
#pragma once

#include "emulator/core/program.h"

namespace ptxrewrite::emulator {

class AffineCheck;

// A kernel of DAC's runs on its machine; `check` compares what leaves its queues. If the machine gave up, the result
// says so (AffineCounters::fallbacks), and memory is anything.
Result<LaunchResult> run_grid(KernelImage& image, const LaunchRequest& request, DeviceMemory& memory,
                              AffineCheck* check = nullptr);

} // namespace ptxrewrite::emulator
