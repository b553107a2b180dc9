// How much a launch may execute. An endless kernel ends, and is told where it turned round.
#pragma once

#include "emulator/core/block.h"

#include <atomic>

namespace ptxrewrite::emulator {

// Fails the warp at the region entry `op`, where the block has executed more than it may.
const MicroOp* run_out_of_fuel(Warp& warp, const MicroOp& op);

// What all blocks of a launch execute together. A block's own fuel bounds one that never ends; this bounds grids of
// ever so many.
class LaunchFuel {
public:
  explicit LaunchFuel(const LaunchRequest& request);

  // Before a block of `warps` warps starts: false when there is nothing left.
  bool start_block(uint32_t warps) { return take(uint64_t(warps) * start_of_a_warp); }
  bool take(uint64_t warp_instructions) {
    return used_.fetch_add(warp_instructions, std::memory_order_relaxed) <= limit_;
  }
  uint64_t limit() const { return limit_; }

private:
  static constexpr uint64_t start_of_a_warp = 64; // costs as much as so many instructions

  uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

} // namespace ptxrewrite::emulator
