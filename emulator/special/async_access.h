// Shared by asynchronous copies and mbarriers: addresses of lanes, and the bytes at them.
#pragma once

#include "emulator/core/address.h"
#include "emulator/core/copies.h"
#include "emulator/core/decode.h"
#include "emulator/core/lanes.h"

#include <bit>
#include <string>

namespace ptxrewrite::emulator {

// MicroOp::flags: a Space in the low byte, and
constexpr uint32_t flag_narrow_first = 1u << 8; // addresses of 32 bits
constexpr uint32_t flag_narrow_second = 1u << 9;
constexpr uint32_t flag_narrow_third = 1u << 10;

// Bytes of a bulk operation that cost as much fuel as one instruction.
constexpr uint64_t bytes_like_an_instruction = 128;

inline uint64_t lane_address(const Warp& warp, LaneRef base, bool narrow, int64_t offset, unsigned lane) {
  if (narrow) return static_cast<uint32_t>(warp.lanes<uint32_t>(base)[lane] + static_cast<uint64_t>(offset));
  return warp.lanes<uint64_t>(base)[lane] + static_cast<uint64_t>(offset);
}

// Inactive lanes get the address of an active lane.
inline void all_addresses(const Warp& warp, LaneRef base, bool narrow, int64_t offset,
                          uint64_t (&addresses)[warp_size]) {
  const auto first = static_cast<unsigned>(std::countr_zero(warp.mask));
  for (unsigned lane = 0; lane < warp_size; ++lane)
    addresses[lane] = lane_address(warp, base, narrow, offset, (warp.mask >> lane) & 1 ? lane : first);
}

// Returns the lane's aligned bytes, or nullptr after the block has failed.
inline std::byte* lane_bytes(Warp& warp, const MicroOp& op, unsigned lane, Space space, uint64_t address,
                             uint64_t bytes, uint64_t alignment, const char* what) {
  std::byte* host = resolve(*warp.block, warp, lane, space, address, bytes);
  if (host && address % alignment == 0) return host;
  bad_access(warp, op, lane, space, address, host ? alignment : bytes, what);
  return nullptr;
}

// Is there room for one more late copy? If not, the block has failed.
inline bool has_room_for_copy(Warp& warp, const MicroOp& op, unsigned lane) {
  const LateCopies* late = warp.block->late_copies.get();
  if (!late || !late->full()) return true;
  warp.block->fail(warp, op, lane,
                   "the block has " + std::to_string(LateCopies::most_pending) +
                       " asynchronous copies that nothing has waited for");
  return false;
}

template <class Body> const MicroOp* for_each_lane(Warp& warp, const MicroOp& op, Body&& body) {
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1)
    if (!body(static_cast<unsigned>(std::countr_zero(lanes)))) return nullptr;
  return &op + 1;
}

// Destination of a copy and the mbarrier that counts its bytes, in shared::cluster.
struct CopyTarget {
  uint64_t to = 0, barrier = 0;
  bool of_pair = false; // .cta_group::2: the bytes may be counted in the other block of the destination's pair
};

// For instructions with .multicast::cluster: calls body(CopyTarget), which returns false on failure, for each block of
// the cluster in `mask` (bit i: %cluster_ctarank i), with the target's offsets in its shared memory (PTX ISA,
// cp.async.bulk, ctaMask). With .cta_group::2 the bytes are counted in the block of the destination's pair whose
// rank has the same parity as the rank of the mbarrier's own block. Returns false if the block has failed, which is
// also the case if the mask contains blocks that do not exist.
template <class Body>
bool for_each_target(Warp& warp, const MicroOp& op, unsigned lane, uint32_t mask, const CopyTarget& target,
                     Body&& body) {
  const uint64_t blocks = warp.block->cluster ? warp.block->cluster->blocks.size() : 1;
  if (uint64_t(mask) >> blocks) {
    warp.block->fail(warp, op, lane,
                     "a copy to the blocks of mask " + std::to_string(mask) + ", in a cluster of " +
                         std::to_string(blocks));
    return false;
  }
  for (; mask; mask &= mask - 1) {
    const auto rank = static_cast<uint64_t>(std::countr_zero(mask));
    const uint64_t counted = target.of_pair ? (rank & ~uint64_t(1)) | (target.barrier >> shared_rank_shift & 1) : rank;
    if (!body(CopyTarget{(rank << shared_rank_shift) + target.to % shared_rank_bytes,
                         (counted << shared_rank_shift) + target.barrier % shared_rank_bytes, target.of_pair}))
      return false;
  }
  return true;
}

// The mbarrier of an asynchronous operation must be in the block of its destination (PTX ISA, st.async); with
// .cta_group::2 it may also be in the other block of the pair, whose %cluster_ctarank differs in the last bit. If not,
// the block has failed.
bool is_in_same_block(Warp& warp, const MicroOp& op, unsigned lane, const CopyTarget& target);

// Called when a thread tests an mbarrier: performs the pending copies of all blocks of the cluster that complete there.
// Returns the fault's message, or an empty string.
std::string complete_late_copies(Block& block, std::byte* barrier);

struct AddressSource {
  LaneRef base;
  int64_t offset = 0;
  bool narrow = false;
};

inline AddressSource address_source(Decoder& decoder, unsigned top_level_index) {
  Decoder::Address address = decoder.address(decoder.top_level(top_level_index), true);
  if (address.constant) return {decoder.constant(0, 64), address.offset, false};
  return {address.base, address.offset, address.narrow};
}

// Two offsets in MicroOp::immediate.
struct CopyOffsets {
  int32_t to = 0, from = 0;
};

// Returns the kind of data that a copy reports to its mbarrier.
DataReport report_of(const ir::Form& form);
// Can the mbarrier receive reports? If not, the block has failed.
bool takes_reports(Warp& warp, const MicroOp& op, unsigned lane, const std::byte* barrier);

// cp.async.bulk, without tensors.
void decode_bulk_copy(Decoder& decoder);

} // namespace ptxrewrite::emulator
