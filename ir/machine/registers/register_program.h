// A function in terms of machine registers of 32 bits: what each machine instruction reads and writes, in blocks. What
// register-level analyses (warp_liveness.h, regions.h) work on. Predicates are left out: machines keep them apart.
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
  bool guarded = false;      // lanes whose guard is false keep what the written registers held
  bool long_latency = false; // a load of global memory: what it writes arrives late
  bool waits = false;        // for the block's other warps
  RegisterSet reads, writes;
  RegisterSet temporaries; // taken by the instruction alone, to put a vector together
};

struct RegisterBlock {
  static constexpr uint32_t none = UINT32_MAX;

  BlockId id;
  std::vector<RegisterInstruction> instructions;
  std::vector<uint32_t> successors; // without repetition
  bool diverges = false;            // lanes of a warp may leave it by different successors
  uint32_t dominator = none;        // the immediate one; none for the entry
  uint32_t post_dominator = none;   // the immediate one; none where only leaving the kernel joins the lanes
};

// Reachable blocks in layout order; indices are places in `blocks`.
struct RegisterProgram {
  std::vector<RegisterBlock> blocks;
  uint32_t registers = 0; // one more than the highest one

  bool dominates(uint32_t upper, uint32_t lower) const;
};

// The blocks alone; all branches with two successors diverge.
RegisterProgram register_blocks(const Function& function);

// The allocation must not ask for moves on edges (AllocationOptions::keep_names).
RegisterProgram register_program(const Function& function, const MachineValues& values, const Allocation& allocation);

} // namespace ptxrewrite::ir
