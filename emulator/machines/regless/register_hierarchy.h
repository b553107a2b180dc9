// RFH: values in one of three register files, chosen by the compiler (Gebhart et al., "A compile-time managed
// multi-level register file hierarchy", MICRO 2011): the last result file holds one value of a warp, for readers in the
// same units; the operand file a few; the main file everything. The small ones belong to warps that are active and are
// empty when a warp waits for memory, so a value lies in them inside of one strand alone: instructions up to one that
// needs the result of a load of global memory that the strand issued. Strands end with their basic block here; in the
// cited scheme some of them go on over forward branches.
//
// Each value that a strand defines, and each that it reads twice from the main file, is placed by what that saves for
// each instruction that the place is taken. A value that is needed behind the strand is written to the main file, too;
// one that does not fit for all of its reads may be there for the first of them.
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
  uint16_t fills = 0;                                  // of the operand file, by reads of the main one
  uint16_t registers_read = 0, registers_written = 0;  // of a file without levels
};

struct HierarchySettings {
  uint32_t operand_entries = 8;
  std::array<double, file_levels> read_energy{}, write_energy{}; // of one access, in any unit
};

// `is_private`: instructions of the units that have the last result file; others read and write the shared levels.
std::vector<HierarchyRow> place_in_hierarchy(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness,
                                             const HierarchySettings& settings,
                                             const std::function<bool(ir::InstructionId)>& is_private);

// Of a run: accesses of each level by warps.
struct HierarchyCounts {
  std::array<uint64_t, file_levels> reads{}, writes{};
  uint64_t fills = 0;
  uint64_t registers_read = 0, registers_written = 0;
  HierarchyCounts& operator+=(const HierarchyCounts& other);
};
HierarchyCounts count_hierarchy(const std::vector<HierarchyRow>& rows, const FunctionCounters& counters);

} // namespace ptxrewrite::emulator
