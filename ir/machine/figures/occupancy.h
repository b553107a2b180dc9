// How many blocks of a kernel an SM holds at a time, and what keeps it from holding more.
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
  // What binds; where several do, the first in the order of the enumeration. The same when no block fits.
  OccupancyLimit limit = OccupancyLimit::warps;
  // How many blocks each would allow alone.
  uint32_t by_warps = 0, by_registers = 0, by_shared = 0, by_blocks = 0;
};

// With the largest carve-out of shared memory that the machine has.
Occupancy occupancy(const Machine& machine, const KernelResources& kernel);

} // namespace ptxrewrite::ir
