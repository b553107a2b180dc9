// A set-associative cache of 128-byte lines whose four 32-byte sectors are filled one by one, least recently used line
// out first. Which set a line goes to is a hash of its address, as on all machines since Fermi.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace ptxrewrite::timing {

class SectoredCache {
  static constexpr unsigned least_room = 2, room_bits = 2, most_ways = least_room << ((1 << room_bits) - 1);

public:
  SectoredCache() = default;
  // 0 bytes: a cache that never hits. At most 16 ways.
  SectoredCache(uint64_t bytes, unsigned ways) { reset(bytes, ways); }
  // An empty one. What was touched of the one before is cleared, its memory used again. `dirty_ways`: so many lines of
  // a set may be dirty; of more, the least recently used one is written back and stays.
  void reset(uint64_t bytes, unsigned ways, unsigned dirty_ways = most_ways);

  // The sectors of `wanted` that are there. The others are filled.
  uint8_t read(uint64_t line, uint8_t wanted) {
    if (sets_ == 0) return 0;
    uint64_t& entry = use(line);
    const auto hits = static_cast<uint8_t>(entry & wanted);
    entry |= wanted;
    return hits;
  }
  // A write-back cache: the sectors are there and dirty from now on; nothing is read for it. Was the line there?
  bool write(uint64_t line, uint8_t sectors);
  // A write-through cache without allocation: a line that is there stays as it is (and holds what is written).
  uint8_t present(uint64_t line) const;

  // Dirty sectors that made room for others, so far.
  uint64_t written_back() const { return written_back_; }
  uint64_t lines() const { return sets_ * ways_; }
  // Dirty sectors that are there.
  uint64_t dirty_sectors() const;

private:
  // tag << 8 | dirty sectors << 4 | valid sectors; 0: nothing. The latest used way of a set comes first. Tags are one
  // more than lines, so that no entry of a line is 0.
  static constexpr unsigned tag_shift = 8;
  uint64_t set_index(uint64_t line) const {
    uint64_t hash = line * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * sets_) >> 64);
  }
  // Makes it the first of its set, in the place of the last one if it is not there. Valid until the next use.
  uint64_t& use(uint64_t line) {
    uint32_t& place = places_[set_index(line)];
    uint64_t* const set = entries_of(place);
    return *set >> tag_shift == line + 1 ? *set : use_other(line, place);
  }
  uint64_t& use_other(uint64_t line, uint32_t& place);
  void clean_one_of(uint32_t place);
  uint64_t& use_new(uint64_t line, uint32_t& place);
  uint64_t* entries_of(uint32_t place) const { return entries_.get() + uint64_t(place >> room_bits) * least_room; }
  unsigned room_of(uint32_t place) const { return std::min(least_room << (place & ((1 << room_bits) - 1)), ways_); }
  uint32_t take(uint32_t room_class);

  uint64_t sets_ = 0;
  unsigned ways_ = 0, dirty_ways_ = most_ways;
  // Most of a large cache is never touched, and most of its sets have few lines: they get room as they need it, first
  // for two lines, then for twice as many. By set: where it is, in units of the least room, and how often that was
  // doubled; 0: nowhere. The first unit is empty.
  std::vector<uint32_t> places_;
  struct Free {
    void operator()(uint64_t* entries) const { std::free(entries); }
  };
  std::unique_ptr<uint64_t[], Free> entries_; // from calloc: they cost nothing until they are used
  uint64_t capacity_ = 0;                     // units there is memory for
  uint32_t used_ = 1;                         // of them
  std::vector<uint32_t> touched_;             // sets that are somewhere
  uint64_t written_back_ = 0;
};

} // namespace ptxrewrite::timing
