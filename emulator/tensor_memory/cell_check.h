// --check of tensor memory: records accesses to its cells and tests their order (races: emulator/core/check.h).
//
// Products and copies issued by one thread are ordered among themselves (PTX ISA 9.7.16.6, "Memory consistency
// model"), and with everything after an mbarrier that a commit arrives at. Loads and stores of warps are ordered as
// accesses to shared memory are, once the warp has waited for them, and also by .relaxed operations between two
// tcgen05.fence. Synchronisation that releases and acquires needs none ("the standard memory consistency model ... also
// apply", 9.7.16.6.3), and compilers write none. There is one record for 16 lanes of a column.
#pragma once

#include "emulator/tensor_memory/tensor_memory.h"

namespace ptxrewrite::emulator {

struct CellRange {
  uint8_t groups = 0; // bit i: lanes 16 * i to 16 * i + 15
  uint32_t column = 0, columns = 0;
};
constexpr uint8_t all_groups = 0xff;
// Returns the groups of `lanes` lanes starting at `first`.
constexpr uint8_t groups_of(uint32_t first, uint32_t lanes) {
  uint8_t groups = 0;
  for (uint32_t group = first / lanes_of_record; group * lanes_of_record < first + lanes; ++group)
    groups = static_cast<uint8_t>(groups | 1u << group);
  return groups;
}

enum class CellUse : uint8_t { load, store, operation_read, operation_write };

// `number`: of an operation. Called only if there is a checker.
void check_cells(Warp& warp, const MicroOp& op, TensorMemory& memory, const CellRange& range, CellUse use,
                 uint32_t number);

} // namespace ptxrewrite::emulator
