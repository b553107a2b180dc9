// Check mode: what a kernel does wrong without crashing.
#pragma once

#include "emulator/block.h"

namespace ptxrewrite::emulator {

// One for each block that runs (design.md, Memory is checked).
class MemoryChecker {
public:
  virtual ~MemoryChecker() = default;
  virtual void start_block(Block& block) = 0;
  virtual void barrier_completed(Block& block, unsigned number) = 0;
  // Adds what was found in the block that has ended to `findings`.
  virtual void take_findings(std::vector<Finding>& findings) = 0;
};

} // namespace ptxrewrite::emulator
