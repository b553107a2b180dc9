// Arguments of launches, which streams and graphs take alike.
#pragma once

#include "cuda/context/context.h"

namespace ptxrewrite::cuda::driver {

// The bytes of the kernel's .param space, from pointers to the arguments or from one block of bytes (`extra`).
Code pack_arguments(const Kernel& kernel, void** arguments, void** extra, std::vector<std::byte>& bytes);

} // namespace ptxrewrite::cuda::driver
