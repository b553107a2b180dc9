// The number of blocks of a kernel that an SM can hold at a time, and the resource that limits it.
#pragma once

#include "ir/machine/figures/machine.h"

#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

struct KernelResources {
  uint32_t threads_per_block = 0;
  uint32_t registers = 0;    // per thread, of 32 bits
  uint32_t shared_bytes = 0; // per block, static and dynamic
};

enum class OccupancyLimit : uint8_t { warps, registers, shared, blocks };
std::string_view spelling(OccupancyLimit limit);

struct Occupancy {
  uint32_t blocks = 0; // per SM; 0: a block does not fit, the launch fails
  uint32_t warps = 0;  // per SM
  // The limiting resource; among several, the first in enumeration order. Also set if no block fits.
  OccupancyLimit limit = OccupancyLimit::warps;
  // Number of blocks that each resource alone would allow.
  uint32_t by_warps = 0, by_registers = 0, by_shared = 0, by_blocks = 0;
};

// Assumes the largest carve-out of shared memory of the machine.
Occupancy occupancy(const Machine& machine, const KernelResources& kernel);

} // namespace ptxrewrite::ir
