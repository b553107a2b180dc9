// A flat hash table of row numbers: the index of a table whose rows are searched by content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxrewrite {

// Open addressing, linear probing, at most half full. Callers supply the hash of each number; find() leaves it to the
// caller to compare the rows of numbers with the same hash.
class HashIndex {
public:
  static constexpr uint32_t none = UINT32_MAX;

  // The first number under this hash that `is_it(number)` accepts; `none` if there is none.
  template <class IsIt> uint32_t find(uint64_t hash, IsIt&& is_it) const {
    if (slots_.empty()) return none;
    for (size_t at = place(hash);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.number == none) return none;
      if (slot.hash == hash && is_it(slot.number)) return slot.number;
    }
  }
  void add(uint64_t hash, uint32_t number) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put({hash, number});
    ++count_;
  }

private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = none;
  };

  size_t place(uint64_t hash) const { return (hash ^ hash >> 32) & (slots_.size() - 1); }
  void put(const Slot& row) {
    size_t at = place(row.hash);
    while (slots_[at].number != none)
      at = (at + 1) & (slots_.size() - 1);
    slots_[at] = row;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.number != none) put(slot);
  }

  std::vector<Slot> slots_; // their number is a power of two
  size_t count_ = 0;
};

} // namespace ptxrewrite
