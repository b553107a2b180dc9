// The grid of a persistent kernel: one resident wave of blocks, which iterate over the planned blocks.
#pragma once

#include "launch/launch_plan.h"

#include <algorithm>

namespace ptxrewrite::launch {

// As many blocks in x as the whole device can hold at once, but at most the planned number.
inline Dim3 persistent_grid(const Dim3& planned, uint64_t resident_blocks) {
  const uint64_t blocks = std::min({std::max<uint64_t>(resident_blocks, 1), planned.count(), uint64_t{max_grid.x}});
  return {static_cast<uint32_t>(blocks), 1, 1};
}

} // namespace ptxrewrite::launch
