// Locates the memory that the lanes of a warp access: found and checked once for the whole warp if all lanes are in one
// allocation or space, else lane by lane.
#pragma once

#include "emulator/access/lane_moves.h"
#include "emulator/core/address.h"
#include "emulator/core/lanes.h"

#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {

// Relation between the addresses of the active lanes.
enum class Pattern : uint8_t { neighbours, same, scattered };

struct WarpAccess {
  alignas(64) uint64_t addresses[warp_size]; // in `space`; an inactive lane has the address of some active one
  Space space = Space::global;
  Pattern pattern = Pattern::scattered;
  unsigned first = 0; // lowest active lane
  // Host address = bias + address for all active lanes; 0: resolved lane by lane. An integer because it is no valid
  // pointer.
  uintptr_t bias = 0;

  std::byte* host(unsigned lane) const { return reinterpret_cast<std::byte*>(bias + addresses[lane]); }
};

// Addresses of the active lanes, from a base of 32 or 64 bits; lanes `size` bytes apart are neighbours. The sum wraps
// at the base's width: nvcc folds constants into offsets of shared memory, so that the base alone can be negative.
template <class Base>
[[gnu::always_inline]] inline void gather_addresses(const Warp& warp, const MicroOp& op, uint64_t size,
                                                    WarpAccess& access) {
  const Base* base = warp.lanes<Base>(op.source[0]);
  const auto offset = static_cast<uint64_t>(op.immediate);
  access.first = static_cast<unsigned>(std::countr_zero(warp.mask));
  const auto address_of = [&](unsigned lane) -> uint64_t { return static_cast<Base>(base[lane] + offset); };
  const uint64_t start = address_of(access.first);
  uint64_t apart = 0, different = 0;
  if (warp.mask == full_mask) {
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      const uint64_t address = address_of(lane);
      access.addresses[lane] = address;
      apart |= address ^ (start + lane * size);
      different |= address ^ start;
    }
  } else {
    const uint32_t mask = warp.mask;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      const uint64_t keep = (mask >> lane) & 1 ? ~uint64_t(0) : 0;
      const uint64_t address = (address_of(lane) & keep) | (start & ~keep);
      access.addresses[lane] = address;
      apart |= (address ^ (start + (uint64_t(lane) - access.first) * size)) & keep;
      different |= address ^ start;
    }
  }
  access.pattern = apart == 0 ? Pattern::neighbours : different == 0 ? Pattern::same : Pattern::scattered;
}

// Are the accesses of all active lanes inside [begin, begin + bytes)?
[[gnu::always_inline]] inline bool all_inside(const Warp& warp, const WarpAccess& access, uint64_t size, uint64_t begin,
                                              uint64_t bytes) {
  if (bytes < size) return false;
  const uint64_t limit = bytes - size; // the last offset that is inside; below 2^63
  uint64_t outside = 0;                // its sign bit is set if an offset is negative or beyond the limit
  if (access.pattern == Pattern::scattered) {
    for (uint64_t address : access.addresses)
      outside |= (address - begin) | (limit - (address - begin));
  } else {
    const unsigned last = access.pattern == Pattern::same ? access.first : 31u - std::countl_zero(warp.mask);
    for (unsigned lane : {access.first, last}) {
      const uint64_t offset = access.addresses[lane] - begin;
      outside |= offset | (limit - offset);
    }
  }
  return static_cast<int64_t>(outside) >= 0;
}

// Converts generic addresses to addresses of a space, if all active lanes are in one window.
inline void leave_generic(WarpAccess& access) {
  const SpaceAddress first = split_generic(access.addresses[access.first]);
  const uint64_t window = access.addresses[access.first] - first.address;
  uint64_t beyond = 0;
  if (first.space == Space::global) {
    for (uint64_t address : access.addresses)
      if (split_generic(address).space != Space::global) return;
  } else {
    for (uint64_t address : access.addresses)
      beyond |= address - window;
    if (beyond >= window_size) return;
    for (uint64_t& address : access.addresses)
      address -= window;
  }
  access.space = first.space;
}

// Addresses in the shared memory of a cluster. If all are in the block itself, they become addresses of Space::shared.
inline void locate_in_cluster(Block& block, uint64_t size, WarpAccess& access, const Warp& warp) {
  const uint64_t first = access.addresses[access.first], rank = first >> shared_rank_shift;
  uint64_t different = 0;
  for (uint64_t address : access.addresses)
    different |= (address ^ first) >> shared_rank_shift;
  const bool is_own = rank == block.cluster_rank;
  if (different || (!is_own && access.space == Space::shared)) return; // lane by lane
  const Block* owner = is_own ? &block : block_at(block, first);
  if (!owner) return;
  const uint64_t begin = rank << shared_rank_shift;
  const bool inside = all_inside(warp, access, size, begin, owner->shared_bytes);
  if (is_own) {
    access.space = Space::shared;
    for (uint64_t& address : access.addresses)
      address -= begin;
  }
  if (inside) access.bias = reinterpret_cast<uintptr_t>(owner->shared) - (is_own ? 0 : begin);
}

// Locates the lanes' bytes: sets `bias` if all are in one range, else leaves it 0.
[[gnu::always_inline]] inline void locate(Warp& warp, const MicroOp& op, uint64_t size, WarpAccess& access) {
  Block& block = *warp.block;
  if (access.space == Space::generic) {
    leave_generic(access);
    if (block.cluster && access.space == Space::shared) access.space = Space::cluster;
  }
  if (access.space == Space::cluster && !block.cluster) access.space = Space::shared;
  switch (access.space) {
  case Space::global: {
    MemoryRange& range = block.sites[op.auxiliary].range;
    if (!all_inside(warp, access, size, range.begin, range.size)) [[unlikely]] {
      range = block.launch->memory->find(access.addresses[access.first]);
      if (!all_inside(warp, access, size, range.begin, range.size)) return;
    }
    access.bias = reinterpret_cast<uintptr_t>(range.host) - range.begin;
    return;
  }
  case Space::shared:
    if (all_inside(warp, access, size, 0, block.shared_bytes))
      access.bias = reinterpret_cast<uintptr_t>(block.shared);
    else if (block.cluster)
      locate_in_cluster(block, size, access, warp);
    return;
  case Space::cluster:
    locate_in_cluster(block, size, access, warp);
    return;
  case Space::constant:
    if (all_inside(warp, access, size, 0, block.image->constant_bank.size()))
      access.bias = reinterpret_cast<uintptr_t>(block.image->constant_bank.data());
    return;
  case Space::local:
    if (all_inside(warp, access, size, 0, block.local_stride))
      access.bias = reinterpret_cast<uintptr_t>(block.local) + uint64_t(warp.index) * warp_size * block.local_stride;
    return;
  default:
    return;
  }
}

// Adds the distance between the lanes' local memories. Not for misaligned accesses, because their message shows the
// address that the program uses.
inline void step_to_own_local(const Warp& warp, WarpAccess& access, bool aligned) {
  if (!aligned) {
    access.bias = 0;
    return;
  }
  for (unsigned lane = 0; lane < warp_size; ++lane)
    access.addresses[lane] += lane * warp.block->local_stride;
  access.pattern = Pattern::scattered;
}

// Resolves the bytes of one lane without the fast path; returns nullptr after the block has failed.
inline std::byte* lane_bytes(Warp& warp, const MicroOp& op, const WarpAccess& access, unsigned lane, uint64_t size,
                             const char* what) {
  std::byte* host =
      access.bias ? access.host(lane) : resolve(*warp.block, warp, lane, access.space, access.addresses[lane], size);
  if (host && (access.addresses[lane] & (size - 1)) == 0) [[likely]]
    return host;
  bad_access(warp, op, lane, access.space, access.addresses[lane], size, what);
  return nullptr;
}

[[gnu::always_inline]] inline bool all_aligned(const WarpAccess& access, uint64_t size) {
  if (access.pattern != Pattern::scattered) return (access.addresses[access.first] & (size - 1)) == 0;
  uint64_t bits = 0;
  for (uint64_t address : access.addresses)
    bits |= address;
  return (bits & (size - 1)) == 0;
}

} // namespace ptxrewrite::emulator
