// Blocks per SM against a search that allocates registers and shared memory block by block, and against CUDA's
// calculator: systematically at the steps, and for a million random configurations each.
#include "ir/machine/figures/occupancy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <random>
#include <vector>

#ifdef PTXREWRITE_HAVE_CUDA_OCCUPANCY
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#endif

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

uint32_t up(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Places blocks on an SM until one does not fit. Each partition of the register file has its own warps: a warp is
// placed in the partition with the most room.
uint32_t blocks_by_filling(const Machine& machine, const KernelResources& kernel) {
  const OccupancyFacts& facts = machine.occupancy;
  uint32_t warps = (kernel.threads_per_block + 31) / 32;
  if (kernel.threads_per_block > facts.max_threads_per_block || kernel.registers > facts.max_registers_per_thread ||
      kernel.shared_bytes > facts.max_shared_bytes_per_block)
    return 0;
  bool by_block = facts.register_unit == RegisterUnit::block;
  std::vector<uint32_t> partitions(by_block ? 1 : facts.warp_granularity,
                                   by_block ? facts.registers : facts.registers / facts.warp_granularity);
  // The allocator refuses a block whose warps, filled up to whole rounds over the partitions, would not fit alone.
  uint32_t per_warp = up(32 * kernel.registers, facts.register_granularity);
  if (!by_block && up(warps, facts.warp_granularity) * per_warp > facts.registers) return 0;
  uint32_t blocks = 0, warps_left = facts.max_warps, shared_left = facts.shared_bytes;
  uint32_t shared = up(kernel.shared_bytes + facts.shared_reserved, facts.shared_granularity);
  while (blocks < facts.max_blocks && warps <= warps_left && shared <= shared_left) {
    if (by_block) {
      uint32_t need = up(up(warps, facts.warp_granularity) * 32 * kernel.registers, facts.register_granularity);
      if (need > partitions[0]) return blocks;
      partitions[0] -= need;
    } else {
      for (uint32_t warp = 0; warp < warps; ++warp) {
        auto roomiest = std::max_element(partitions.begin(), partitions.end());
        if (*roomiest < per_warp) return blocks;
        *roomiest -= per_warp;
      }
    }
    warps_left -= warps;
    shared_left -= shared;
    ++blocks;
  }
  return blocks;
}

template <class Visit> void for_each_configuration(Visit visit) {
  for (uint32_t threads : {1, 32, 33, 64, 96, 128, 160, 192, 256, 288, 320, 384, 512, 513, 576, 640, 768, 1024, 1025})
    for (uint32_t registers = 0; registers <= 256; ++registers)
      for (uint32_t shared : {0, 1, 256, 1000, 4096, 6000, 8192, 12288, 16384, 33000, 49152, 65536, 98304, 98305})
        visit(KernelResources{threads, registers, shared});
}

// This many configurations of any size, half of the shared sizes near those of usual blocks.
template <class Visit> void for_random_configurations(const Machine& machine, size_t count, Visit visit) {
  std::mt19937 random(machine.sms * 1000 + machine.compute_capability);
  auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  for (size_t i = 0; i < count; ++i) {
    const uint32_t shared = below(2) ? below(machine.occupancy.shared_bytes + 1000) : below(20000);
    visit(KernelResources{1 + below(1060), below(258), shared});
  }
}
constexpr size_t random_configurations = 1'000'000;

// Fills the partitions of an SM in turns, independently of the allocator above: counts the whole warps that each holds,
// and deals out blocks warp by warp, from one partition to the next.
uint32_t blocks_by_dealing(const Machine& machine, const KernelResources& kernel) {
  const OccupancyFacts& facts = machine.occupancy;
  const uint32_t warps = (kernel.threads_per_block + 31) / 32;
  const uint32_t per_warp = up(32 * kernel.registers, facts.register_granularity);
  uint32_t blocks = 0;
  for (uint32_t next = 1; next <= facts.max_blocks; ++next) {
    if (next * warps > facts.max_warps) break;
    if (next * up(kernel.shared_bytes + facts.shared_reserved, facts.shared_granularity) > facts.shared_bytes) break;
    if (facts.register_unit == RegisterUnit::block) {
      if (next * up(up(warps, facts.warp_granularity) * 32 * kernel.registers, facts.register_granularity) >
          facts.registers)
        break;
    } else if (per_warp) {
      // The fullest partition has a share of all warps, rounded up.
      const uint32_t of_fullest = up(next * warps, facts.warp_granularity) / facts.warp_granularity;
      if (of_fullest * per_warp > facts.registers / facts.warp_granularity) break;
    }
    blocks = next;
  }
  return blocks;
}

bool can_be_launched(const Machine& machine, const KernelResources& kernel) {
  const OccupancyFacts& facts = machine.occupancy;
  return kernel.threads_per_block <= facts.max_threads_per_block &&
         kernel.registers <= facts.max_registers_per_thread && kernel.shared_bytes <= facts.max_shared_bytes_per_block;
}

} // namespace

TEST_CASE("blocks per SM are those of a search upward, on a million random configurations") {
  const size_t each = random_configurations / all_machines().size() + 1;
  size_t tried = 0, placed = 0;
  for (const Machine& machine : all_machines())
    for_random_configurations(machine, each, [&](const KernelResources& kernel) {
      ++tried;
      const uint32_t found = occupancy(machine, kernel).blocks;
      const uint32_t by_filling = blocks_by_filling(machine, kernel);
      const uint32_t by_dealing = can_be_launched(machine, kernel) ? blocks_by_dealing(machine, kernel) : 0;
      placed += found != 0;
      if (found == by_filling && found == by_dealing) return;
      CAPTURE(machine.name);
      CAPTURE(kernel.threads_per_block);
      CAPTURE(kernel.registers);
      CAPTURE(kernel.shared_bytes);
      REQUIRE(found == by_filling);
      REQUIRE(found == by_dealing);
    });
  CHECK(tried >= random_configurations);
  CHECK(placed > tried / 3);
}

TEST_CASE("blocks per SM are as many as can be placed one after the other") {
  size_t placed = 0;
  for (const Machine& machine : all_machines())
    for_each_configuration([&](const KernelResources& kernel) {
      Occupancy found = occupancy(machine, kernel);
      uint32_t expected = blocks_by_filling(machine, kernel);
      placed += expected != 0;
      if (found.blocks == expected) return;
      CAPTURE(machine.name);
      CAPTURE(kernel.threads_per_block);
      CAPTURE(kernel.registers);
      CAPTURE(kernel.shared_bytes);
      REQUIRE(found.blocks == expected);
    });
  CHECK(placed > 100000);
}

TEST_CASE("what binds is named") {
  const Machine& a100 = *find_machine("a100");
  CHECK(occupancy(a100, {1024, 32, 0}).limit == OccupancyLimit::warps);
  CHECK(occupancy(a100, {1024, 32, 0}).warps == 64);
  CHECK(occupancy(a100, {256, 128, 0}).limit == OccupancyLimit::registers);
  CHECK(occupancy(a100, {256, 128, 0}).blocks == 2);
  CHECK(occupancy(a100, {128, 32, 40000}).limit == OccupancyLimit::shared);
  CHECK(occupancy(a100, {128, 32, 40000}).blocks == 4);
  CHECK(occupancy(a100, {32, 16, 0}).limit == OccupancyLimit::blocks);
  CHECK(occupancy(a100, {32, 16, 0}).warps == 32);
  CHECK(occupancy(a100, {2048, 16, 0}).blocks == 0);
  CHECK(occupancy(a100, {1024, 255, 0}).blocks == 0);
  CHECK(occupancy(a100, {1024, 255, 0}).limit == OccupancyLimit::registers);
}

TEST_CASE("blocks per SM are what the calculator of CUDA says") {
#ifdef PTXREWRITE_HAVE_CUDA_OCCUPANCY
  size_t compared = 0;
  for (const Machine& machine : all_machines()) {
    if (machine.compute_capability < 50) continue; // the calculator no longer knows older ones
    const OccupancyFacts& facts = machine.occupancy;
    cudaOccDeviceProp chip;
    chip.computeMajor = static_cast<int>(machine.compute_capability / 10);
    chip.computeMinor = static_cast<int>(machine.compute_capability % 10);
    chip.maxThreadsPerBlock = static_cast<int>(facts.max_threads_per_block);
    chip.maxThreadsPerMultiprocessor = static_cast<int>(facts.max_warps * 32);
    chip.regsPerBlock = chip.regsPerMultiprocessor = static_cast<int>(facts.registers);
    chip.warpSize = 32;
    chip.sharedMemPerBlock = 48 * 1024;
    chip.sharedMemPerBlockOptin = facts.max_shared_bytes_per_block;
    chip.sharedMemPerMultiprocessor = facts.shared_bytes;
    chip.reservedSharedMemPerBlock = facts.shared_reserved;
    chip.numSms = static_cast<int>(machine.sms);
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    auto compare = [&](const KernelResources& kernel) {
      if (kernel.registers > facts.max_registers_per_thread)
        return; // the calculator accepts 256, which no kernel can have
      cudaOccFuncAttributes attributes;
      attributes.maxThreadsPerBlock = INT_MAX;
      attributes.numRegs = static_cast<int>(kernel.registers);
      attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
      attributes.maxDynamicSharedSizeBytes = facts.max_shared_bytes_per_block;
      attributes.numBlockBarriers = 1;
      cudaOccResult result;
      cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
          &result, &chip, &attributes, &state, static_cast<int>(kernel.threads_per_block), kernel.shared_bytes);
      if (error != CUDA_OCC_SUCCESS) return;
      ++compared;
      uint32_t expected = static_cast<uint32_t>(result.activeBlocksPerMultiprocessor);
      uint32_t found = occupancy(machine, kernel).blocks;
      if (found == expected) return;
      // For 6.0 the calculator assigns registers in two partitions, and refuses blocks as if there were four.
      if (machine.compute_capability == 60 && expected == 0) return;
      CAPTURE(machine.name);
      CAPTURE(kernel.threads_per_block);
      CAPTURE(kernel.registers);
      CAPTURE(kernel.shared_bytes);
      REQUIRE(found == expected);
    };
    for_each_configuration(compare);
    for_random_configurations(machine, random_configurations / 4, compare);
  }
  CHECK(compared > random_configurations);
#else
  MESSAGE("skipped: no cuda_occupancy.h when this was built");
#endif
}
