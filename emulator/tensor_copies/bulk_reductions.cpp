// cp.reduce.async.bulk (PTX ISA 9.7.9.25.4.2): each lane combines a run of elements in global memory, or in shared
// memory of its block, with a run of the same length in shared memory.
#include "emulator/core/check.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"
#include "emulator/special/matrix.h"
#include "emulator/tensor_copies/map_access.h"
#include "emulator/tensor_copies/tile_transfer.h"

#include <fmt/format.h>

#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t run_alignment = 16; // of both addresses and of the size

struct BulkReduction {
  Space to_space = Space::global;
  ReduceElements reduce = nullptr;
  AddressSource to, from, barrier;
  LaneRef bytes;
  bool has_barrier = false;
};

bool watch_reduction(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t to, uint64_t from,
                     uint32_t bytes) {
  if (!warp.block->watch_memory || bytes == 0) return true;
  uint64_t addresses[warp_size];
  const uint32_t mask = std::exchange(warp.mask, 1u << lane);
  std::fill_n(addresses, warp_size, from);
  bool good = watch_access(warp, op, Space::shared, addresses, bytes, AccessKind::load);
  std::fill_n(addresses, warp_size, to);
  good = good && watch_access(warp, op, space, addresses, bytes, AccessKind::atomic);
  warp.mask = mask;
  return good;
}

bool reduce_run(Warp& warp, const MicroOp& op, unsigned lane, const BulkReduction& reduction) {
  Block& block = *warp.block;
  const auto address = [&](const AddressSource& source) {
    return lane_address(warp, source.base, source.narrow, source.offset, lane);
  };
  const uint64_t to = address(reduction.to), from = address(reduction.from);
  const uint32_t bytes = warp.lanes<uint32_t>(reduction.bytes)[lane];
  if (bytes % run_alignment) {
    block.fail(warp, op, lane, fmt::format("bulk reduction of {} bytes, which is not a multiple of 16", bytes));
    return false;
  }
  if (!has_room_for_copy(warp, op, lane)) return false;
  block.take_fuel(bytes / bytes_like_an_instruction);
  TileTransfer transfer;
  transfer.kind = TransferKind::reduce;
  transfer.reduce = reduction.reduce;
  transfer.concurrent = reduction.to_space == Space::global && block.launch->concurrent;
  transfer.shared = lane_bytes(warp, op, lane, Space::shared, from, bytes, run_alignment, "bulk reduction");
  if (!transfer.shared) return false;
  const FoundRun run{lane_bytes(warp, op, lane, reduction.to_space, to, bytes, run_alignment, "bulk reduction"), 0,
                     bytes};
  if (!run.global || !watch_reduction(warp, op, lane, reduction.to_space, to, from, bytes)) return false;
  std::byte* barrier = nullptr;
  if (reduction.has_barrier) {
    barrier = lane_bytes(warp, op, lane, Space::shared, address(reduction.barrier), 8, 8, "mbarrier operation");
    if (!barrier) return false;
    if (block.checker) block.checker->release(warp, Space::shared, address(reduction.barrier));
  }
  std::string wrong;
  if (block.late_copies) {
    wrong =
        block.late_copies->add(CopyKind::bulk, warp.index * warp_size + lane,
                               std::make_unique<LateTransfer>(transfer, std::vector<FoundRun>{run}), bytes, 1, barrier);
  } else {
    carry_out(transfer, std::span(&run, 1));
    if (barrier) wrong = change_barrier(barrier, [&](BarrierWord& word) { return complete_bytes(word, bytes); });
  }
  if (wrong.empty()) return true;
  block.fail(warp, op, lane, std::move(wrong));
  return false;
}

const MicroOp* reduce_bulk(Warp& warp, const MicroOp& op) {
  const auto& reduction =
      *static_cast<const BulkReduction*>(warp.activation->function->descriptions[op.auxiliary].get());
  return for_each_lane(warp, op, [&](unsigned lane) { return reduce_run(warp, op, lane, reduction); });
}

std::optional<ir::TensorElement> element_of(ir::ScalarType type) {
  using enum ir::ScalarType;
  switch (type) {
  case u32:
  case b32:
    return ir::TensorElement::u32;
  case s32:
    return ir::TensorElement::s32;
  case u64:
  case b64:
    return ir::TensorElement::u64;
  case s64:
    return ir::TensorElement::s64;
  case f16:
    return ir::TensorElement::f16;
  case bf16:
    return ir::TensorElement::bf16;
  case f32:
    return ir::TensorElement::f32;
  case f64:
    return ir::TensorElement::f64;
  default:
    return std::nullopt;
  }
}

} // namespace

void decode_bulk_reduction(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::optional<ReduceOperation> operation = reduce_operation_of(form);
  const std::optional<ir::TensorElement> element = element_of(form.type());
  BulkReduction reduction;
  if (operation && element) reduction.reduce = reduce_elements(*operation, *element, form.has(ir::Modifier::noftz));
  if (!reduction.reduce) return decoder.unsupported(fmt::format("'{}' is not emulated", form.mnemonic));
  const bool to_global = form.has(ir::Modifier::bulk_group);
  reduction.to_space = to_global ? Space::global : Space::shared;
  reduction.to = address_source(decoder, 0);
  reduction.from = address_source(decoder, 1);
  reduction.bytes = decoder.source(decoder.operands()[decoder.top_level(2)], lanes_of_bits(32));
  reduction.has_barrier = !to_global;
  if (reduction.has_barrier) reduction.barrier = address_source(decoder, 3);
  if (to_global) decoder.order_sensitive();
  const uint32_t description = add_description(decoder, reduction);
  decoder.emit(&reduce_bulk).auxiliary = description;
}

} // namespace ptxrewrite::emulator
