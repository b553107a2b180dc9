#include "emulator/tensor_memory/cell_check.h"

#include "emulator/core/check.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {
namespace {

// Checks one access against the earlier ones.
struct Check {
  Warp& warp;
  const MicroOp& op;
  TensorMemory& memory;
  TensorAccess here;
  bool writes = false;

  MemoryChecker& checker() const { return *warp.block->checker; }

  // Reports a misuse; the checker keeps the first one of the instruction.
  bool tell(const TensorAccess& before, std::string_view what) const {
    checker().tensor_memory_misuse(warp, op, what,
                                   MemoryChecker::OtherPlace{before.instruction, before.warp, before.rank});
    return false;
  }

  // Is this access ordered after `before`? If not, it has been reported. `did`: verb for the earlier access.
  bool is_behind(const TensorAccess& before, const char* did) const {
    if (before.clock == 0) return true;
    const bool same_warp = before.warp == here.warp && before.rank == here.rank;
    if (before.by_operation && here.by_operation && same_warp) return true;
    if (before.by_operation) {
      if (checker().knows(warp, before.rank, before.warp, before.clock, true)) return true;
      return tell(before, fmt::format("cells that this instruction {} are {} by an asynchronous operation whose commit "
                                      "the warp knows nothing of (no wait at its mbarrier, or a .relaxed one without "
                                      "tcgen05.fence::after_thread_sync)",
                                      writes ? "writes" : "reads", did));
    }
    if (!same_warp && !checker().knows(warp, before.rank, before.warp, before.clock, false))
      return tell(before, fmt::format("cells that this instruction {} are {} by warp {}, and nothing orders the two "
                                      "(.relaxed operations do with a tcgen05.fence on each side)",
                                      writes ? "writes" : "reads", did, before.warp));
    const bool was_load = std::string_view(did) == "read";
    if (was_load && same_warp && !here.by_operation) return true; // ordered by the warp's registers
    if (memory.has_waited_for(before, was_load)) return true;
    return tell(before, fmt::format("cells that this instruction {} are {} by warp {}, with no tcgen05.wait::{} behind",
                                    writes ? "writes" : "reads", did, before.warp, was_load ? "ld" : "st"));
  }
};

} // namespace

void check_cells(Warp& warp, const MicroOp& op, TensorMemory& memory, const CellRange& range, CellUse use,
                 uint32_t number) {
  const bool by_operation = use == CellUse::operation_read || use == CellUse::operation_write;
  const bool writes = use == CellUse::store || use == CellUse::operation_write;
  TensorAccess here;
  here.clock = by_operation ? number : warp.block->checker->moment(warp);
  here.serial = by_operation ? 0 : memory.serial(warp.index, !writes);
  here.instruction = op.instruction;
  here.rank = static_cast<uint16_t>(warp.block->cluster ? warp.block->cluster_rank : 0);
  here.warp = static_cast<uint8_t>(warp.index);
  here.by_operation = by_operation;
  const Check check{warp, op, memory, here, writes};
  bool good = true;
  for (uint32_t column = range.column; column < range.column + range.columns; ++column)
    for (uint32_t group = 0; group < tensor_lanes / lanes_of_record; ++group) {
      if (!(range.groups >> group & 1)) continue;
      TensorRecord& record = memory.record(group * lanes_of_record, column);
      good = good && check.is_behind(record.write, "written");
      if (writes) good = good && check.is_behind(record.read, "read") && check.is_behind(record.operation_read, "read");
      if (writes)
        record = {here, {}, {}};
      else
        (by_operation ? record.operation_read : record.read) = here;
    }
}

} // namespace ptxrewrite::emulator
