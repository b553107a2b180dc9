// Looks at a running kernel instruction by instruction: for studies of redundancy, widths, affine values. A launch
// without an observer runs a loop that knows nothing of it.
#pragma once

#include "emulator/block.h"

namespace ptxrewrite::emulator {

// Called from the host thread that runs the block; a launch with an observer uses one host thread, blocks in order.
class Observer {
public:
  virtual ~Observer() = default;
  // Lanes of warp.mask are about to execute the instruction `op.instruction` (image-wide; KernelImage::function_of).
  virtual void before(Block& block, Warp& warp, const MicroOp& op) { (void)block, (void)warp, (void)op; }
  // Lanes of `mask` have. Its results lie at op.destination.
  virtual void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) {
    (void)block, (void)warp, (void)op, (void)mask;
  }
};

} // namespace ptxrewrite::emulator
