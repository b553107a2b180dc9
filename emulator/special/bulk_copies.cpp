// cp.async.bulk without tensors (PTX ISA 9.7.9.25.4): each lane copies a run of bytes between global and shared memory,
// and the bytes are counted at an mbarrier or belong to a group of the thread. The destination may be in another block
// of the cluster, or in several. The ordering with other accesses (asynchronous proxy) is not modelled.
#include "emulator/core/check.h"
#include "emulator/core/copies.h"
#include "emulator/core/watch.h"
#include "emulator/memory/mbarrier_word.h"
#include "emulator/special/async_access.h"
#include "emulator/special/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

constexpr uint64_t bulk_alignment = 16; // of both addresses and of the size

// The statically known part of an instruction. Operands that the instruction lacks are invalid.
struct BulkCopy {
  Space to_space = Space::shared, from_space = Space::shared;
  AddressSource to, from, barrier; // without a barrier, the copy belongs to a group
  LaneRef bytes;
  LaneRef blocks;                      // .multicast::cluster: a mask
  LaneRef byte_mask;                   // .cp_mask
  LaneRef skipped_front, skipped_back; // .ignore_oob
  DataReport report = DataReport::none;
};

uint64_t address_of(const Warp& warp, const AddressSource& source, unsigned lane) {
  return lane_address(warp, source.base, source.narrow, source.offset, lane);
}

bool watch_run(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address, uint64_t bytes,
               AccessKind kind) {
  if (!warp.block->watch_memory || bytes == 0) return true;
  uint64_t addresses[warp_size];
  const uint32_t mask = std::exchange(warp.mask, 1u << lane);
  std::fill_n(addresses, warp_size, address);
  const bool good = watch_access(warp, op, space, addresses, bytes, kind);
  warp.mask = mask;
  return good;
}

// A lane's copy while it is issued.
class Issue {
public:
  Issue(Warp& warp, const MicroOp& op, unsigned lane)
      : warp_(warp), op_(op), lane_(lane),
        copy_(*static_cast<const BulkCopy*>(warp.activation->function->descriptions[op.auxiliary].get())) {}

  // Returns false if the block has failed.
  bool run();

private:
  bool fail(std::string message) {
    warp_.block->fail(warp_, op_, lane_, std::move(message));
    return false;
  }
  uint32_t number(LaneRef lanes) const { return lanes ? warp_.lanes<uint32_t>(lanes)[lane_] : 0; }
  bool find_source();
  bool copy_to(const CopyTarget& target);
  bool find_barrier(const CopyTarget& target);

  Warp& warp_;
  const MicroOp& op_;
  unsigned lane_;
  const BulkCopy& copy_;
  PendingCopy pending_;
  std::byte* barrier_ = nullptr;
  uint64_t read_from_ = 0, read_bytes_ = 0;
};

bool Issue::find_source() {
  const uint32_t front = number(copy_.skipped_front), back = number(copy_.skipped_back), bytes = pending_.bytes;
  if (front >= bulk_alignment || back >= bulk_alignment || front + back > bytes)
    return fail(fmt::format("a bulk copy of {} bytes that ignores {} and {} of them; up to 15 are possible", bytes,
                            front, back));
  const uint64_t from = address_of(warp_, copy_.from, lane_);
  if (front != 0 && from % bulk_alignment) {
    bad_access(warp_, op_, lane_, copy_.from_space, from, bulk_alignment, "bulk load");
    return false;
  }
  pending_.skipped_front = static_cast<uint8_t>(front);
  pending_.skipped_back = static_cast<uint8_t>(back);
  read_from_ = from + front;
  read_bytes_ = bytes - front - back;
  const std::byte* first = lane_bytes(warp_, op_, lane_, copy_.from_space, read_from_, read_bytes_,
                                      front == 0 ? bulk_alignment : 1, "bulk load");
  if (first) pending_.from = first - front;
  return first != nullptr;
}

bool Issue::find_barrier(const CopyTarget& target) {
  if (!copy_.barrier.base) return true;
  if (copy_.to_space == Space::cluster && !is_in_same_block(warp_, op_, lane_, target)) return false;
  barrier_ = lane_bytes(warp_, op_, lane_, copy_.to_space, target.barrier, 8, 8, "mbarrier operation");
  if (!barrier_ || (copy_.report != DataReport::none && !takes_reports(warp_, op_, lane_, barrier_))) return false;
  // A thread that finds the barrier's phase over sees the copy, because its bytes are counted after they are moved.
  if (warp_.block->checker) warp_.block->checker->release(warp_, copy_.to_space, target.barrier);
  return true;
}

bool Issue::copy_to(const CopyTarget& target) {
  Block& block = *warp_.block;
  block.take_fuel(pending_.bytes / bytes_like_an_instruction);
  if (!has_room_for_copy(warp_, op_, lane_)) return false;
  pending_.to = lane_bytes(warp_, op_, lane_, copy_.to_space, target.to, pending_.bytes, bulk_alignment, "bulk store");
  if (!pending_.to || !watch_run(warp_, op_, lane_, copy_.from_space, read_from_, read_bytes_, AccessKind::load) ||
      !watch_run(warp_, op_, lane_, copy_.to_space, target.to + pending_.skipped_front, read_bytes_,
                 AccessKind::store) ||
      !find_barrier(target))
    return false;
  if (block.late_copies) {
    std::string wrong = block.late_copies->add(CopyKind::bulk, warp_.index * warp_size + lane_, pending_, barrier_);
    return wrong.empty() || fail(std::move(wrong));
  }
  carry_out(pending_);
  if (!barrier_) return true;
  std::string wrong = complete_copy(barrier_, pending_.bytes, reports(pending_));
  return wrong.empty() || fail(std::move(wrong));
}

bool Issue::run() {
  const uint32_t bytes = number(copy_.bytes);
  if (bytes % bulk_alignment) return fail(fmt::format("bulk copy of {} bytes, which is not a multiple of 16", bytes));
  pending_.bytes = pending_.wanted = bytes;
  pending_.report = copy_.report;
  if (copy_.byte_mask) pending_.byte_mask = static_cast<uint16_t>(number(copy_.byte_mask));
  if (!find_source()) return false;
  CopyTarget target{address_of(warp_, copy_.to, lane_)};
  if (copy_.barrier.base) target.barrier = address_of(warp_, copy_.barrier, lane_);
  if (!copy_.blocks) return copy_to(target);
  return for_each_target(warp_, op_, lane_, number(copy_.blocks), target,
                         [&](const CopyTarget& there) { return copy_to(there); });
}

const MicroOp* copy_bulk(Warp& warp, const MicroOp& op) {
  return for_each_lane(warp, op, [&](unsigned lane) { return Issue(warp, op, lane).run(); });
}

// A prefetch has no visible effect.
const MicroOp* prefetch_bulk(Warp&, const MicroOp& op) {
  return &op + 1;
}

} // namespace

DataReport report_of(const ir::Form& form) {
  using enum ir::Modifier;
  constexpr std::pair<ir::Modifier, DataReport> words[] = {
      {mbarrier_report_validity_per_16bytes_8, DataReport::minus_zero_4},
      {mbarrier_report_validity_per_16bytes_80, DataReport::minus_zero_8},
      {mbarrier_report_validity_per_16bytes_8000, DataReport::minus_zero_16},
      {mbarrier_report_validity_per_16bytes_80000000, DataReport::minus_zero_32},
      {mbarrier_report_validity_per_element_ff, DataReport::all_ones},
  };
  for (const auto& [word, report] : words)
    if (form.has(word)) return report;
  return DataReport::none;
}

bool takes_reports(Warp& warp, const MicroOp& op, unsigned lane, const std::byte* barrier) {
  uint64_t word;
  std::memcpy(&word, barrier, sizeof word);
  if (const BarrierWord found = unpack_barrier(word); found.valid && found.reporting) return true;
  warp.block->fail(warp, op, lane, "a copy that reports to an mbarrier of another layout than v1");
  return false;
}

void decode_bulk_copy(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  using enum ir::Modifier;
  if (form.has(prefetch)) {
    decoder.emit(&prefetch_bulk);
    return;
  }
  const auto word_at = [&](unsigned top_level) {
    return decoder.source(decoder.operands()[decoder.top_level(top_level)], lanes_of_bits(32));
  };
  BulkCopy copy;
  const bool to_global = form.has(bulk_group), ignores = form.has(ignore_oob);
  copy.to_space = to_global                                      ? Space::global
                  : form.space == ir::StateSpace::shared_cluster ? Space::cluster
                                                                 : Space::shared;
  if (!to_global && form.source_space == ir::StateSpace::global) copy.from_space = Space::global;
  copy.to = address_source(decoder, 0);
  copy.from = address_source(decoder, 1);
  copy.bytes = word_at(2);
  copy.report = report_of(form);
  if (ignores) {
    copy.skipped_front = word_at(3);
    copy.skipped_back = word_at(4);
  }
  if (!to_global) copy.barrier = address_source(decoder, ignores ? 5 : 3);
  if (form.has(multicast_cluster) || form.has(multicast_cluster_16b) || form.has(multicast_cluster_32b))
    copy.blocks = word_at(4);
  if (form.has(cp_mask)) copy.byte_mask = word_at(decoder.top_level_count() - 1);
  const uint32_t description = add_description(decoder, copy);
  decoder.emit(&copy_bulk).auxiliary = description;
}

} // namespace ptxrewrite::emulator
