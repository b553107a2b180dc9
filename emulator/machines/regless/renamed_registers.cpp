#include "emulator/machines/regless/renamed_registers.h"

#include <algorithm>

namespace ptxrewrite::emulator {

std::vector<RenamedRow> renamed_registers(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness) {
  std::vector<RenamedRow> rows;
  for (uint32_t block = 0; block < program.blocks.size(); ++block) {
    const std::vector<ir::RegisterInstruction>& instructions = program.blocks[block].instructions;
    ir::RegisterSet before = liveness.live_in(block);
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      const ir::RegisterInstruction& instruction = instructions[i];
      const ir::RegisterSet behind = liveness.live_behind(block, i);
      const ir::RegisterSet written = instruction.writes | instruction.temporaries;
      rows.resize(std::max<size_t>(rows.size(), instruction.id.index() + 1));
      RenamedRow& row = rows[instruction.id.index()];
      row.mapped = static_cast<uint16_t>((before | behind | instruction.reads | written).count());
      row.allocations = static_cast<uint16_t>((written & ~before).count());
      row.reads = static_cast<uint16_t>(instruction.reads.count());
      row.writes = static_cast<uint16_t>(instruction.writes.count());
      before = behind;
    }
  }
  return rows;
}

RenamingCounts& RenamingCounts::operator+=(const RenamingCounts& other) {
  reads += other.reads;
  writes += other.writes;
  allocations += other.allocations;
  instructions += other.instructions;
  mapped += other.mapped;
  most_mapped = std::max(most_mapped, other.most_mapped);
  return *this;
}

RenamingCounts count_renaming(const std::vector<RenamedRow>& rows, const FunctionCounters& counters) {
  RenamingCounts counts;
  for (size_t i = 0; i < std::min(rows.size(), counters.instructions.size()); ++i) {
    const uint64_t executions = counters.instructions[i].executions;
    if (executions == 0 || rows[i].mapped == 0) continue;
    counts.reads += executions * rows[i].reads;
    counts.writes += executions * rows[i].writes;
    counts.allocations += executions * rows[i].allocations;
    counts.instructions += executions;
    counts.mapped += executions * rows[i].mapped;
    counts.most_mapped = std::max<uint64_t>(counts.most_mapped, rows[i].mapped);
  }
  return counts;
}

} // namespace ptxrewrite::emulator
