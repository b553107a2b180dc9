// Arguments of launches, common to streams and graphs.
#pragma once

#include "cuda/context/context.h"

namespace ptxrewrite::cuda::driver {

// Packs the bytes of the kernel's .param space from pointers to the arguments, or from one block of bytes (`extra`).
Code pack_arguments(const Kernel& kernel, void** arguments, void** extra, std::vector<std::byte>& bytes);

} // namespace ptxrewrite::cuda::driver
