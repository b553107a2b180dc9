// cp.async.bulk without tensors (PTX ISA 9.7.9.25.4): each lane copies a run of bytes between global and shared memory,
// and the bytes are counted at an mbarrier or belong to a group of the thread. The destination may be in another block
// of the cluster, or in several. What orders these copies with other accesses (the asynchronous proxy) is not modelled.
#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t bulk_alignment = 16; // of both places and of the size
constexpr uint32_t flag_from_global = 1u << 16;
constexpr uint32_t flag_to_global = 1u << 17;
constexpr uint32_t flag_to_cluster = 1u << 18;
constexpr uint32_t flag_multicast = 1u << 19; // a mask of blocks: the operand in the list at MicroOp::extra

struct BulkPlaces {
  Space to = Space::shared, from = Space::shared;
};

BulkPlaces places_of(const MicroOp& op) {
  return {op.flags & flag_to_global    ? Space::global
          : op.flags & flag_to_cluster ? Space::cluster
                                       : Space::shared,
          op.flags & flag_from_global ? Space::global : Space::shared};
}

bool watch_copy(Warp& warp, const MicroOp& op, unsigned lane, const BulkPlaces& places, uint64_t to, uint64_t from,
                uint64_t bytes) {
  if (!warp.block->watch_memory || bytes == 0) return true;
  uint64_t addresses[warp_size];
  const uint32_t mask = std::exchange(warp.mask, 1u << lane);
  std::fill_n(addresses, warp_size, from);
  bool good = watch_access(warp, op, places.from, addresses, bytes, AccessKind::load);
  std::fill_n(addresses, warp_size, to);
  good = good && watch_access(warp, op, places.to, addresses, bytes, AccessKind::store);
  warp.mask = mask;
  return good;
}

// One copy of a lane, its source found.
bool copy_to(Warp& warp, const MicroOp& op, unsigned lane, const BulkPlaces& places, const CopyTarget& target,
             uint64_t from, PendingCopy copy) {
  Block& block = *warp.block;
  if (!has_room_for_copy(warp, op, lane)) return false;
  copy.to = lane_bytes(warp, op, lane, places.to, target.to, copy.bytes, bulk_alignment, "bulk store");
  if (!copy.to || !watch_copy(warp, op, lane, places, target.to, from, copy.bytes)) return false;
  std::byte* barrier = nullptr;
  if (op.source[3]) {
    if (places.to == Space::cluster && !is_in_same_block(warp, op, lane, target)) return false;
    barrier = lane_bytes(warp, op, lane, places.to, target.barrier, 8, 8, "mbarrier operation");
    if (!barrier) return false;
    // Whoever finds the barrier's phase over sees the copy: its bytes are counted behind it.
    if (block.checker) block.checker->release(warp, places.to, target.barrier);
  }
  if (block.late_copies) {
    block.late_copies->add(CopyKind::bulk, warp.index * warp_size + lane, copy, barrier);
    return true;
  }
  carry_out(copy);
  if (!barrier) return true;
  std::string wrong = change_barrier(barrier, [&](BarrierWord& word) { return complete_bytes(word, copy.bytes); });
  if (wrong.empty()) return true;
  block.fail(warp, op, lane, std::move(wrong));
  return false;
}

// op.source: destination, source, bytes, mbarrier (none: the copy belongs to a group). op.immediate: the first two
// offsets; op.auxiliary: the third.
const MicroOp* copy_bulk(Warp& warp, const MicroOp& op) {
  const auto offsets = std::bit_cast<CopyOffsets>(op.immediate);
  const BulkPlaces places = places_of(op);
  Block& block = *warp.block;
  return for_each_lane(warp, op, [&](unsigned lane) {
    CopyTarget target{lane_address(warp, op.source[0], op.flags & flag_narrow_first, offsets.to, lane)};
    const uint64_t from = lane_address(warp, op.source[1], op.flags & flag_narrow_second, offsets.from, lane);
    const uint32_t bytes = warp.lanes<uint32_t>(op.source[2])[lane];
    if (bytes % bulk_alignment) {
      block.fail(warp, op, lane, fmt::format("bulk copy of {} bytes, which is not a multiple of 16", bytes));
      return false;
    }
    PendingCopy copy{nullptr, nullptr, bytes, bytes};
    copy.from = lane_bytes(warp, op, lane, places.from, from, bytes, bulk_alignment, "bulk load");
    if (!copy.from) return false;
    if (op.source[3])
      target.barrier =
          lane_address(warp, op.source[3], op.flags & flag_narrow_third, static_cast<int32_t>(op.auxiliary), lane);
    const auto copy_there = [&](const CopyTarget& there) {
      block.take_fuel(bytes / bytes_like_an_instruction);
      return copy_to(warp, op, lane, places, there, from, copy);
    };
    if (!(op.flags & flag_multicast)) return copy_there(target);
    const uint32_t mask = warp.lanes<uint32_t>(warp.activation->function->lists[op.extra])[lane];
    return for_each_target(warp, op, lane, mask, target, copy_there);
  });
}

// A prefetch changes nothing that can be seen.
const MicroOp* prefetch_bulk(Warp&, const MicroOp& op) {
  return &op + 1;
}

} // namespace

namespace {

// A copy that looks at the data and reports to its mbarrier (PTX ISA 9.4).
bool reports(const ir::Form& form) {
  using enum ir::Modifier;
  for (ir::Modifier word : {mbarrier_report_validity_per_16bytes_8, mbarrier_report_validity_per_16bytes_80,
                            mbarrier_report_validity_per_16bytes_8000, mbarrier_report_validity_per_16bytes_80000000,
                            mbarrier_report_validity_per_element_ff})
    if (form.has(word)) return true;
  return false;
}

} // namespace

void decode_bulk_copy(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  if (reports(form)) return decoder.unsupported("reports about copied data are not emulated");
  if (form.has(ir::Modifier::ignore_oob)) return decoder.unsupported("bulk copies with bytes out of bounds");
  const bool multicast = form.has(ir::Modifier::multicast_cluster) || form.has(ir::Modifier::multicast_cluster_16b) ||
                         form.has(ir::Modifier::multicast_cluster_32b);
  if (form.has(ir::Modifier::cp_mask)) return decoder.unsupported("bulk copies of chosen bytes");
  if (form.has(ir::Modifier::prefetch)) {
    decoder.emit(&prefetch_bulk);
    return;
  }
  const bool to_global = form.has(ir::Modifier::bulk_group);
  const AddressSource to = address_source(decoder, 0), from = address_source(decoder, 1);
  const LaneRef bytes = decoder.source(decoder.operands()[decoder.top_level(2)], lanes_of_bits(32));
  AddressSource barrier;
  if (!to_global) barrier = address_source(decoder, 3);
  uint32_t mask = 0;
  if (multicast) {
    const ir::Operand& operand = decoder.operands()[decoder.top_level(4)];
    mask = decoder.add_list(std::array{decoder.source(operand, lanes_of_bits(32))});
  }
  using Limits = std::numeric_limits<int32_t>;
  for (int64_t offset : {to.offset, from.offset, barrier.offset})
    if (offset < Limits::min() || offset > Limits::max()) return decoder.unsupported("an offset of more than 32 bits");
  MicroOp& op = decoder.emit(&copy_bulk);
  op.flags = (to.narrow ? flag_narrow_first : 0) | (from.narrow ? flag_narrow_second : 0) |
             (barrier.narrow ? flag_narrow_third : 0) | (to_global ? flag_to_global : 0) |
             (multicast ? flag_multicast : 0) | (form.space == ir::StateSpace::shared_cluster ? flag_to_cluster : 0) |
             (!to_global && form.source_space == ir::StateSpace::global ? flag_from_global : 0);
  op.source[0] = to.base;
  op.source[1] = from.base;
  op.source[2] = bytes;
  op.source[3] = barrier.base;
  op.immediate =
      std::bit_cast<int64_t>(CopyOffsets{static_cast<int32_t>(to.offset), static_cast<int32_t>(from.offset)});
  op.auxiliary = static_cast<uint32_t>(static_cast<int32_t>(barrier.offset));
  op.extra = mask;
}

} // namespace ptxrewrite::emulator
