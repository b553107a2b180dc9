// The instructions of a launch by the parts of R2D2's hardware form (r2d2-isca23 Figs. 12, 14), in machine instructions
// or in PTX.
#pragma once

#include "emulator/core/counters.h"

#include <functional>

namespace ptxrewrite::emulator {

struct InstructionCount {
  uint64_t warps = 0;   // warp instructions
  uint64_t threads = 0; // thread instructions
  InstructionCount& operator+=(const InstructionCount& other) {
    warps += other.warps;
    threads += other.threads;
    return *this;
  }
};

// For a kernel in another form, all instructions are in `rest`.
struct SectionCounts {
  InstructionCount coefficient, thread, block;
  InstructionCount rest; // the body: the paper's non-linear instructions

  InstructionCount linear() const;
  InstructionCount total() const;
  SectionCounts& operator+=(const SectionCounts& other);
};

// The number of machine instructions of a PTX instruction; ir/machine has such tables.
using InstructionWeight = std::function<uint64_t(const ir::Function&, ir::InstructionId)>;

// Executions times weight; without `weight` every instruction counts as 1.
SectionCounts section_counts(const Counters& counters, const InstructionWeight& weight = {});

} // namespace ptxrewrite::emulator
