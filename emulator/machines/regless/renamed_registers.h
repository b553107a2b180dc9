// RFV: a register file in which a register of a warp occupies an entry only from its first write to its last read (Jeon
// et al., MICRO 2015), so that a file of half the size may suffice (RegLess §6.1). Computed from the text alone:
// combined with execution counts of instructions it gives the counts of a run.
#pragma once

#include "emulator/core/counters.h"
#include "ir/machine/registers/warp_liveness.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

struct RenamedRow {
  uint16_t mapped = 0;      // registers of the warp that are mapped while the instruction executes
  uint16_t allocations = 0; // of them, those mapped by the instruction
  uint16_t reads = 0, writes = 0;
};

// By InstructionId of the program.
std::vector<RenamedRow> renamed_registers(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness);

// Counts of a run: accesses of the file, and mapped registers, by warp instructions.
struct RenamingCounts {
  uint64_t reads = 0, writes = 0;
  uint64_t allocations = 0;
  uint64_t instructions = 0, mapped = 0; // mapped registers summed over them
  uint64_t most_mapped = 0;              // of a warp
  RenamingCounts& operator+=(const RenamingCounts& other);
};
RenamingCounts count_renaming(const std::vector<RenamedRow>& rows, const FunctionCounters& counters);

} // namespace ptxrewrite::emulator
