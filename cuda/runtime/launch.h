// Launches, common to streams and graphs.
#pragma once

#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

namespace ptxrewrite::cuda::runtime {

LaunchShape shape_of(const abi::Dim3& grid, const abi::Dim3& block, uint64_t dynamic_shared, bool cooperative = false);
Action box_copy_action(Context& context, const abi::Memcpy3D& copy);

} // namespace ptxrewrite::cuda::runtime
