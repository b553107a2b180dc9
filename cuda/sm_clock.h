// The current clock of a GPU's multiprocessors, measured by a kernel.
#pragma once

#include "cuda/device.h"

namespace ptxrewrite::cuda {

// In Hz. Loads an additional module and leaves the previous one in use. Fails with errors of allocation, loading or
// launching.
Result<double> measure_sm_clock(Device& device, size_t module_in_use);

} // namespace ptxrewrite::cuda
