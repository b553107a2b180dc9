// The table rows of tcgen05, and its commits, shifts and fences.
//
// A commit makes an mbarrier track the completion of all earlier operations of its thread (PTX ISA 9.7.16.12). Fences
// have no effect on the emulator's order of operations; only --check uses them.
#include "emulator/tensor_memory/instructions.h"

#include "emulator/core/check.h"
#include "emulator/core/machine.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"
#include "emulator/special/collective.h"
#include "emulator/tensor_memory/cell_check.h"
#include "emulator/tensor_memory/tensor_memory.h"

#include <fmt/format.h>

#include <array>

namespace ptxrewrite::emulator {
namespace {

constexpr uint32_t flag_multicast = 1u << 16; // with a mask of blocks in source[1]

bool commit_to(Warp& warp, const MicroOp& op, unsigned lane, TensorMemory& memory, Space space, uint64_t address) {
  Block& block = *warp.block;
  std::byte* barrier = lane_bytes(warp, op, lane, space, address, 8, 8, "mbarrier operation");
  if (!barrier) return false;
  if (block.checker) block.checker->release_products(warp, space, address, memory.last_operation(warp.index));
  if (memory.is_late()) {
    if (!memory.has_room(warp, op, lane)) return false;
    TensorOperation commit;
    commit.thread = warp.index * warp_size + lane;
    commit.barrier = barrier;
    memory.issue(std::move(commit));
    return true;
  }
  std::string wrong = change_barrier(barrier, [](BarrierWord& word) { return arrive_at_barrier(word, 1); });
  if (wrong.empty()) return true;
  block.fail(warp, op, lane, std::move(wrong));
  return false;
}

// op.source: the mbarrier, and the mask of blocks.
const MicroOp* commit(Warp& warp, const MicroOp& op) {
  TensorMemory* memory = own_tensor_memory(warp, op, op.flags & flag_pair ? 2 : 1);
  if (!memory) return nullptr;
  const auto space = static_cast<Space>(op.flags & 0xff);
  return for_each_lane(warp, op, [&](unsigned lane) {
    uint64_t address = lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane);
    if (!(op.flags & flag_multicast)) return commit_to(warp, op, lane, *memory, space, address);
    if (space == Space::generic) address = split_generic(address).address;
    return for_each_target(
        warp, op, lane, warp.lanes<uint32_t>(op.source[1])[lane], {0, address},
        [&](const CopyTarget& there) { return commit_to(warp, op, lane, *memory, Space::cluster, there.barrier); });
  });
}

bool shift_lane(Warp& warp, const MicroOp& op, unsigned lane) {
  const unsigned group = op.flags & flag_pair ? 2 : 1;
  TensorPair pair;
  if (!find_tensor_pair(warp, op, group, pair)) return false;
  TensorMemory* own = own_tensor_memory(warp, op, group);
  const TensorAddress at = tensor_address(
      static_cast<uint32_t>(lane_address(warp, op.source[0], op.flags & flag_narrow_first, op.immediate, lane)));
  if (at.lane != 0) {
    warp.block->fail(warp, op, lane,
                     fmt::format("tcgen05.shift of a matrix that begins in lane {}: only lane 0 is emulated", at.lane),
                     FaultKind::illegal_address);
    return false;
  }
  const uint32_t number = own->next_operation(warp.index);
  for (TensorMemory* memory : {pair.even, pair.odd}) {
    if (!memory) continue;
    if (!is_in_allocation(warp, op, lane, *memory, "tcgen05.shift", at, tensor_lanes, shifted_columns)) return false;
    if (!warp.block->checker) continue;
    const CellRange range{all_groups, at.column, shifted_columns};
    check_cells(warp, op, *memory, range, CellUse::operation_write, number);
  }
  if (!own->has_room(warp, op, lane)) return false;
  TensorOperation operation;
  operation.thread = warp.index * warp_size + lane;
  operation.kind = TensorOperation::Kind::shift;
  operation.shift = {pair.even, pair.odd, at.column};
  own->issue(std::move(operation));
  return true;
}

// op.source: address.
const MicroOp* shift(Warp& warp, const MicroOp& op) {
  return for_each_lane(warp, op, [&](unsigned lane) { return shift_lane(warp, op, lane); });
}

template <bool before> const MicroOp* fence(Warp& warp, const MicroOp& op) {
  if (MemoryChecker* checker = warp.block->checker.get()) checker->tensor_fence(warp, before);
  return &op + 1;
}

void decode_tensor_memory(Decoder& decoder, ir::InstructionId) {
  using enum ir::Modifier;
  const ir::Form& form = decoder.form();
  if (form.has(fence_before_thread_sync) || form.has(fence_after_thread_sync)) return decode_tensor_fence(decoder);
  if (form.has(wait_ld) || form.has(wait_st)) return decode_tensor_wait(decoder);
  if (form.has(alloc) || form.has(dealloc) || form.has(relinquish_alloc_permit))
    return decode_tensor_allocation(decoder);
  if (form.has(ld) || form.has(st)) return decode_tensor_transfer(decoder);
  if (form.has(mma)) return decode_tensor_product(decoder);
  if (form.has(cp)) return decode_tensor_copy_down(decoder);
  if (form.has(ir::Modifier::commit)) return decode_tensor_commit(decoder);
  decode_tensor_shift(decoder);
}

} // namespace

void decode_tensor_commit(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  const AddressSource barrier = address_source(decoder, 0);
  const bool is_multicast = form.has(ir::Modifier::multicast_cluster) ||
                            form.has(ir::Modifier::multicast_cluster_16b) ||
                            form.has(ir::Modifier::multicast_cluster_32b);
  LaneRef mask;
  if (is_multicast) mask = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(32));
  MicroOp& op = decoder.emit(&commit);
  op.flags = static_cast<uint32_t>(decode_space(form.space)) | (barrier.narrow ? flag_narrow_first : 0) |
             (is_multicast ? flag_multicast : 0) | (form.has(ir::Modifier::cta_group_2) ? flag_pair : 0);
  op.source[0] = barrier.base;
  op.source[1] = mask;
  op.immediate = barrier.offset;
}

void decode_tensor_shift(Decoder& decoder) {
  const AddressSource place = address_source(decoder, 0);
  MicroOp& op = decoder.emit(&shift);
  op.flags = (place.narrow ? flag_narrow_first : 0) | (decoder.form().has(ir::Modifier::cta_group_2) ? flag_pair : 0);
  op.source[0] = place.base;
  op.immediate = place.offset;
}

void decode_tensor_fence(Decoder& decoder) {
  decoder.emit(decoder.form().has(ir::Modifier::fence_before_thread_sync) ? &fence<true> : &fence<false>);
}

void add_tensor_memory_operations(OperationTable& table) {
  table.special("tcgen05*", &decode_tensor_memory);
}

} // namespace ptxrewrite::emulator
