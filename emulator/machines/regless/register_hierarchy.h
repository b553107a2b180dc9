// RFH: values in one of three register files, chosen by the compiler (Gebhart et al., "A compile-time managed
// multi-level register file hierarchy", MICRO 2011): the last result file holds one value of a warp, for readers in the
// same units; the operand file a few; the main file all. The small files belong to active warps and are empty when a
// warp waits for memory, so they hold values only within one strand: the instructions up to one that needs the result
// of a global load of the strand. Strands end with their basic block here; in the cited scheme some continue across
// forward branches.
//
// Each value that a strand defines, and each that it reads twice from the main file, is placed by the energy saved per
// instruction of occupancy. A value that is live after the strand is written to the main file, too; one that does not
// fit for all of its reads may be placed for the first of them.
#pragma once

#include "emulator/core/counters.h"
#include "ir/machine/registers/warp_liveness.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace ptxrewrite::emulator {

enum class FileLevel : uint8_t { last_result, operand, main };
inline constexpr size_t file_levels = 3;

struct HierarchyRow {
  std::array<uint16_t, file_levels> reads{}, writes{}; // by FileLevel
  uint16_t fills = 0;                                  // of the operand file, by reads of the main file
  uint16_t registers_read = 0, registers_written = 0;  // of a register file without levels
};

struct HierarchySettings {
  uint32_t operand_entries = 8;
  std::array<double, file_levels> read_energy{}, write_energy{}; // per access, in any unit
};

// `is_private`: instructions of the units that have the last result file; others access the shared levels only.
std::vector<HierarchyRow> place_in_hierarchy(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness,
                                             const HierarchySettings& settings,
                                             const std::function<bool(ir::InstructionId)>& is_private);

// Accesses of each level by warps in a run.
struct HierarchyCounts {
  std::array<uint64_t, file_levels> reads{}, writes{};
  uint64_t fills = 0;
  uint64_t registers_read = 0, registers_written = 0;
  HierarchyCounts& operator+=(const HierarchyCounts& other);
};
HierarchyCounts count_hierarchy(const std::vector<HierarchyRow>& rows, const FunctionCounters& counters);

} // namespace ptxrewrite::emulator
