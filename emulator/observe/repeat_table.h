// Finds warps of a block that did the same work: a hash table that stores the first warp of each hash, and whether
// other warps had it, too. Entries take eight bytes, since a block has one per distinct warp instruction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

class RepeatTable {
public:
  // Records `hash` for warp `warp` (below 32). Returns true if another warp has recorded it before.
  bool repeats(uint64_t hash, uint32_t warp) {
    const uint64_t key = (hash | occupied) & ~low_bits;
    for (size_t at = place_of(hash);; at = (at + 1) & mask_) {
      uint64_t& entry = entries_[at];
      if ((entry & ~low_bits) == key) {
        const bool is_first = ((entry & low_bits) >> 1) == warp;
        const bool others = (entry & many) || !is_first;
        if (!is_first) entry |= many;
        return others;
      }
      if (entry != 0) continue;
      entry = key | uint64_t(warp) << 1;
      if (++used_ * 2 > entries_.size()) grow(entries_.size() * 2);
      return false;
    }
  }
  void prefetch(uint64_t hash) const { __builtin_prefetch(&entries_[place_of(hash)], 1); }
  // Prepares the table for the next block, which is expected to be as large as the last one.
  void clear() {
    size_t size = smallest;
    while (size < used_ * 2)
      size *= 2;
    if (size == entries_.size())
      std::ranges::fill(entries_, 0);
    else
      entries_.assign(size, 0);
    mask_ = entries_.size() - 1;
    used_ = 0;
  }

private:
  static constexpr uint64_t occupied = uint64_t(1) << 63, low_bits = 63, many = 1;
  static constexpr size_t smallest = 256;

  size_t place_of(uint64_t hash) const { return (hash >> 6) & mask_; }
  void grow(size_t size) {
    std::vector<uint64_t> old(size);
    old.swap(entries_);
    mask_ = size - 1;
    for (uint64_t entry : old) {
      if (entry == 0) continue;
      size_t at = place_of(entry);
      while (entries_[at] != 0)
        at = (at + 1) & mask_;
      entries_[at] = entry;
    }
  }

  std::vector<uint64_t> entries_ = std::vector<uint64_t>(smallest);
  size_t mask_ = smallest - 1;
  size_t used_ = 0;
};

} // namespace ptxrewrite::emulator
