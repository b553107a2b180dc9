// A function in terms of 32-bit machine registers, which each instruction reads and writes, by block. The input of
// register-level analyses (warp_liveness.h, regions.h). Without predicates, which have their own register file.
#pragma once

#include "ir/machine/registers/allocation.h"

#include <bitset>
#include <cstdint>
#include <vector>

namespace ptxrewrite::ir {

using RegisterSet = std::bitset<256>;

struct RegisterInstruction {
  InstructionId id;
  uint32_t weight = 1;       // machine instructions
  bool guarded = false;      // lanes whose guard is false keep the old contents of the written registers
  bool long_latency = false; // a load of global memory, whose result arrives late
  bool waits = false;        // for other warps of the block
  RegisterSet reads, writes;
  RegisterSet temporaries; // used only within the instruction, to assemble a vector
};

struct RegisterBlock {
  static constexpr uint32_t none = UINT32_MAX;

  BlockId id;
  std::vector<RegisterInstruction> instructions;
  std::vector<uint32_t> successors; // without duplicates
  bool diverges = false;            // lanes of a warp may leave it by different successors
  uint32_t dominator = none;        // immediate dominator; none for the entry
  uint32_t post_dominator = none;   // immediate post-dominator; none if lanes only reconverge by leaving the kernel
};

// Reachable blocks in layout order; block numbers are indices into `blocks`.
struct RegisterProgram {
  std::vector<RegisterBlock> blocks;
  uint32_t registers = 0; // highest number in use + 1

  bool dominates(uint32_t upper, uint32_t lower) const;
};

// Only the blocks, without instructions; all branches with two successors count as divergent.
RegisterProgram register_blocks(const Function& function);

// The allocation must not contain moves on edges (AllocationOptions::keep_names).
RegisterProgram register_program(const Function& function, const MachineValues& values, const Allocation& allocation);

} // namespace ptxrewrite::ir
