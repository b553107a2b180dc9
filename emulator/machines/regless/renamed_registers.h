// RFV: a register file in which a register of a warp takes room only from its first write to its last read (Jeon et
// al., MICRO 2015), so that a file of half the size may do (RegLess §6.1). What follows from the text alone: together
// with how often each instruction ran, it gives the counts of a run.
#pragma once

#include "emulator/core/counters.h"
#include "ir/machine/registers/warp_liveness.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

struct RenamedRow {
  uint16_t mapped = 0;      // registers of the warp that have room while the instruction executes
  uint16_t allocations = 0; // of them, those that get it here
  uint16_t reads = 0, writes = 0;
};

// By InstructionId of the program.
std::vector<RenamedRow> renamed_registers(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness);

// Of a run: accesses of the file, and what is mapped, by instruction of a warp.
struct RenamingCounts {
  uint64_t reads = 0, writes = 0;
  uint64_t allocations = 0;
  uint64_t instructions = 0, mapped = 0; // mapped registers summed over them
  uint64_t most_mapped = 0;              // of a warp
  RenamingCounts& operator+=(const RenamingCounts& other);
};
RenamingCounts count_renaming(const std::vector<RenamedRow>& rows, const FunctionCounters& counters);

} // namespace ptxrewrite::emulator
