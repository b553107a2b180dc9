// The counters of a launch, per static instruction: the timing and energy models use only these.
#pragma once

#include "ir/core/module.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::emulator {

// The counters of one static instruction. Executions are per warp, lanes per thread.
struct InstructionCounters {
  uint64_t executions = 0;   // by warps with at least one active lane, whether its guard is true or not
  uint64_t lanes = 0;        // active lanes whose guard was true
  uint64_t guarded_off = 0;  // executions in which no active lane's guard was true
  uint64_t transactions = 0; // memory only, with count_memory: 32-byte sectors (global, local), or passes over the 32
                             // banks (shared)
};

struct FunctionCounters {
  std::string function;
  const ir::Function* source = nullptr;
  std::vector<InstructionCounters> instructions; // by InstructionId
};

struct Counters {
  std::vector<FunctionCounters> functions; // functions that have run
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  uint64_t blocks = 0;
  uint64_t warps = 0;
};

} // namespace ptxrewrite::emulator
