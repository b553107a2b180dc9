// Limits the instructions of a launch. An endless kernel ends with a failure at its loop.
#pragma once

#include "emulator/core/block.h"
#include "emulator/memory/host_program.h"

#include <atomic>

namespace ptxrewrite::emulator {

// Fails the warp at the region entry `op` because the block has exceeded its limit.
const MicroOp* run_out_of_fuel(Warp& warp, const MicroOp& op);

// The fuel of all blocks of a launch together. A block's own fuel stops an endless block; this limits grids with very
// many blocks.
class LaunchFuel {
public:
  explicit LaunchFuel(const LaunchRequest& request);

  // Call it before a block of `warps` warps starts. Returns false if no fuel is left.
  bool start_block(uint32_t warps) { return take(uint64_t(warps) * start_of_a_warp); }
  bool take(uint64_t warp_instructions) {
    if (has_program_ended() && !take_fuel_after_end(warp_instructions)) return false;
    return used_.fetch_add(warp_instructions, std::memory_order_relaxed) <= limit_;
  }
  uint64_t limit() const { return limit_; }

private:
  static constexpr uint64_t start_of_a_warp = 64; // cost of starting a warp, in instructions

  uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

} // namespace ptxrewrite::emulator
