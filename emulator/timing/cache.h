// A set-associative cache of 128-byte lines with four 32-byte sectors that are filled individually, and with LRU
// replacement. The set of a line is a hash of its address, as on all machines since Fermi.
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
  // Empties the cache and gives it this geometry; its memory is reused. At most `dirty_ways` lines of a set are dirty:
  // if there are more, the least recently used dirty line is written back and stays in the cache as a clean line.
  void reset(uint64_t bytes, unsigned ways, unsigned dirty_ways = most_ways);

  // Returns the sectors of `wanted` that hit. The others are filled.
  uint8_t read(uint64_t line, uint8_t wanted) {
    if (sets_ == 0) return 0;
    uint64_t& entry = use(line);
    const auto hits = static_cast<uint8_t>(entry & wanted);
    entry |= wanted;
    return hits;
  }
  // A write-back cache: makes the sectors valid and dirty without a read. Returns whether the line was present.
  bool write(uint64_t line, uint8_t sectors);
  // The valid sectors of a line. A write-through cache without allocation: writes change neither lines nor LRU order.
  uint8_t present(uint64_t line) const;

  // The number of dirty sectors written back so far.
  uint64_t written_back() const { return written_back_; }
  uint64_t lines() const { return sets_ * ways_; }
  // The number of dirty sectors in the cache.
  uint64_t dirty_sectors() const;

private:
  // tag << 8 | dirty sectors << 4 | valid sectors; 0: empty. Ways of a set are in order of use, the latest first. The
  // tag is the line number plus one, so that an entry of a line is never 0.
  static constexpr unsigned tag_shift = 8;
  uint64_t set_index(uint64_t line) const {
    uint64_t hash = line * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * sets_) >> 64);
  }
  // Moves the line to the front of its set; a missing line replaces the last one. Valid until the next use.
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
  // Most of a large cache is never touched, and most of its sets hold few lines: sets get memory on demand, first for
  // two lines, then twice as much each time. By set: its offset in units of the smallest room, and the number of
  // doublings; 0: no memory. The first unit is unused.
  std::vector<uint32_t> places_;
  struct Free {
    void operator()(uint64_t* entries) const { std::free(entries); }
  };
  std::unique_ptr<uint64_t[], Free> entries_; // from calloc: pages cost nothing until they are used
  uint64_t capacity_ = 0;                     // allocated units
  uint32_t used_ = 1;                         // used units
  std::vector<uint32_t> touched_;             // sets that have memory
  uint64_t written_back_ = 0;
};

} // namespace ptxrewrite::timing
