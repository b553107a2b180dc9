// Implements the rules of the published occupancy calculators, see occupancy.h.
#include "ir/machine/figures/occupancy.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t warp_size = 32;

constexpr uint64_t divide_up(uint64_t value, uint64_t divisor) {
  return (value + divisor - 1) / divisor;
}
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return divide_up(value, unit) * unit;
}

// Number of blocks that fit in the register file.
uint64_t blocks_by_registers(const Machine& machine, uint64_t warps, uint64_t registers) {
  const OccupancyFacts& facts = machine.occupancy;
  if (registers > facts.max_registers_per_thread) return 0;
  if (registers == 0) return facts.max_blocks;
  uint64_t granted_warps = round_up(warps, facts.warp_granularity);
  if (facts.register_unit == RegisterUnit::block)
    return facts.registers / round_up(granted_warps * warp_size * registers, facts.register_granularity);
  // Allocation per warp; from compute capability 5 on each of the SM's four partitions has its own part of the register
  // file, before that two schedulers take warps in pairs. The warp granularity expresses both.
  uint64_t per_warp = round_up(warp_size * registers, facts.register_granularity);
  uint64_t partitions = facts.warp_granularity;
  if (per_warp * granted_warps > facts.registers) return 0;
  return facts.registers / partitions / per_warp * partitions / warps;
}

} // namespace

std::string_view spelling(OccupancyLimit limit) {
  switch (limit) {
  case OccupancyLimit::warps:
    return "warps";
  case OccupancyLimit::registers:
    return "registers";
  case OccupancyLimit::shared:
    return "shared memory";
  case OccupancyLimit::blocks:
    return "blocks";
  }
  return {};
}

Occupancy occupancy(const Machine& machine, const KernelResources& kernel) {
  const OccupancyFacts& facts = machine.occupancy;
  uint64_t warps = std::max<uint64_t>(divide_up(kernel.threads_per_block, warp_size), 1);
  uint64_t shared = round_up(uint64_t{kernel.shared_bytes} + facts.shared_reserved, facts.shared_granularity);
  Occupancy result;
  result.by_warps =
      kernel.threads_per_block > facts.max_threads_per_block ? 0 : static_cast<uint32_t>(facts.max_warps / warps);
  result.by_registers = static_cast<uint32_t>(blocks_by_registers(machine, warps, kernel.registers));
  result.by_shared = kernel.shared_bytes > facts.max_shared_bytes_per_block ? 0
                     : shared == 0                                          ? facts.max_blocks
                                   : static_cast<uint32_t>(facts.shared_bytes / shared);
  result.by_blocks = facts.max_blocks;
  result.blocks = std::min({result.by_warps, result.by_registers, result.by_shared, result.by_blocks});
  result.warps = static_cast<uint32_t>(result.blocks * warps);
  result.limit = result.blocks == result.by_warps       ? OccupancyLimit::warps
                 : result.blocks == result.by_registers ? OccupancyLimit::registers
                 : result.blocks == result.by_shared    ? OccupancyLimit::shared
                                                        : OccupancyLimit::blocks;
  return result;
}

} // namespace ptxrewrite::ir
