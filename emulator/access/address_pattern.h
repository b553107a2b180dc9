// Fast path for accesses whose lanes have the same address distances as the last execution of the instruction: located
// and checked with one comparison of all lanes and two comparisons of bounds.
#pragma once

#include "emulator/access/warp_access.h"

namespace ptxrewrite::emulator {

// Remembers the address distances of an access that was in bounds and aligned; access.bias gives its host addresses.
void remember_pattern(Warp& warp, const MicroOp& op, uint64_t size, const WarpAccess& access);

// Forgets a pattern that did not match; waits longer before the next one if the pattern has never matched.
void forget_pattern(AccessSite& site);

namespace detail {

// Do the base registers of the active lanes have the distances of the pattern?
template <class Base>
[[gnu::always_inline]] inline bool has_distances(const AddressPattern& pattern, const Base* base, Base first) {
  using Signed = std::make_signed_t<Base>;
  const Signed* expected = nullptr;
  if constexpr (sizeof(Base) == 8)
    expected = pattern.distance.data();
  else
    expected = pattern.narrow_distance.data();
  Base different = 0;
  if (pattern.mask == full_mask)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      different |= static_cast<Base>(base[lane] - first) ^ static_cast<Base>(expected[lane]);
  else
    for (unsigned lane = 0; lane < warp_size; ++lane)
      different |= (static_cast<Base>(base[lane] - first) ^ static_cast<Base>(expected[lane])) &
                   static_cast<Base>(static_cast<Signed>(pattern.active[lane]));
  return different == 0;
}

// Are both accesses inside [begin, begin + bytes)? Lowest and highest are less than 2^33 apart.
inline bool both_inside(uint64_t lowest, uint64_t highest, uint64_t size, uint64_t begin, uint64_t bytes) {
  if (bytes < size) return false;
  const uint64_t limit = bytes - size;
  return lowest - begin <= limit && highest - begin <= limit;
}

// Returns the bytes of the first active lane, at `address`, or nullptr if the access needs the slow path.
[[gnu::always_inline]] inline std::byte* first_bytes(const Warp& warp, const AccessSite& site, Space space,
                                                     uint64_t address, uint64_t size) {
  const Block& block = *warp.block;
  const uint64_t lowest = address + static_cast<uint64_t>(site.pattern->lowest);
  const uint64_t highest = address + static_cast<uint64_t>(site.pattern->highest);
  const auto all_in = [&](uint64_t begin, uint64_t bytes) { return both_inside(lowest, highest, size, begin, bytes); };
  const auto own_local = [&] {
    const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
    return block.local + (uint64_t(warp.index) * warp_size + lane) * block.local_stride;
  };
  switch (space) {
  case Space::global:
    return all_in(site.range.begin, site.range.size) ? site.range.at(address) : nullptr;
  case Space::shared:
    return all_in(0, block.shared_bytes) ? block.shared + address : nullptr;
  case Space::local:
    return all_in(0, block.local_stride) ? own_local() + address : nullptr;
  case Space::constant:
    return all_in(0, block.image->constant_bank.size()) ? block.image->constant_bank.data() + address : nullptr;
  case Space::generic: // no allocation overlaps a window
    if (site.pattern->in_local)
      return all_in(local_window, block.local_stride) ? own_local() + (address - local_window) : nullptr;
    if (all_in(site.range.begin, site.range.size)) return site.range.at(address);
    if (!block.cluster && all_in(shared_window, block.shared_bytes)) return block.shared + (address - shared_window);
    break;
  case Space::parameter:
  case Space::cluster:
    break;
  }
  return nullptr;
}

} // namespace detail

// Returns the bytes of the first active lane if the lanes' addresses match the site's pattern and are in bounds and
// aligned; other lanes' bytes are at host_distance from there. Returns nullptr if the fast path does not apply.
template <class Base>
[[gnu::always_inline]] inline std::byte* repeated_access(Warp& warp, const MicroOp& op, Space space, uint64_t size,
                                                         AccessSite& site) {
  const AddressPattern* pattern = site.pattern;
  if (!pattern || warp.block->watch_memory) return nullptr;
  const Base* base = warp.lanes<Base>(op.source[0]);
  const Base first = base[std::countr_zero(warp.mask)];
  const uint64_t address = static_cast<Base>(first + static_cast<uint64_t>(op.immediate));
  if (pattern->mask == warp.mask && detail::has_distances<Base>(*pattern, base, first)) [[likely]] {
    if (address & (size - 1)) return nullptr;
    std::byte* bytes = detail::first_bytes(warp, site, space, address, size);
    site.held |= bytes != nullptr;
    return bytes;
  }
  forget_pattern(site);
  return nullptr;
}

} // namespace ptxrewrite::emulator
