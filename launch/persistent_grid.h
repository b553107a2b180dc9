// The grid of a persistent kernel: one resident wave, which walks over the planned blocks.
#pragma once

#include "launch/launch_plan.h"

#include <algorithm>

namespace ptxrewrite::launch {

// As many blocks as the whole device holds at once, in x, but no more than planned.
inline Dim3 persistent_grid(const Dim3& planned, uint64_t resident_blocks) {
  const uint64_t blocks = std::min({std::max<uint64_t>(resident_blocks, 1), planned.count(), uint64_t{max_grid.x}});
  return {static_cast<uint32_t>(blocks), 1, 1};
}

} // namespace ptxrewrite::launch
