// The clock at which a GPU's multiprocessors run right now, measured by a kernel.
#pragma once

#include "cuda/device.h"

namespace ptxrewrite::cuda {

// In Hz. Leaves one more module loaded and the one before in use. Errors: those of memory, loading, and launching.
Result<double> measure_sm_clock(Device& device, size_t module_in_use);

} // namespace ptxrewrite::cuda
