#include "emulator/timing/cache.h"

#include "emulator/timing/memory_port.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

constexpr uint64_t valid_bits = 0xf, dirty_shift = 4;

} // namespace

void SectoredCache::reset(uint64_t bytes, unsigned ways, unsigned dirty_ways) {
  for (uint32_t set : touched_)
    places_[set] = 0;
  if (entries_) std::fill_n(entries_.get(), uint64_t(used_) * least_room, uint64_t(0));
  touched_.clear();
  used_ = 1;
  written_back_ = 0;
  const uint64_t lines = bytes / line_bytes;
  sets_ = 0;
  if (lines == 0) return;
  ways_ = static_cast<unsigned>(std::min<uint64_t>(std::min(ways, most_ways), lines));
  dirty_ways_ = std::min(dirty_ways, ways_);
  sets_ = lines / ways_;
  if (places_.size() < sets_) places_.resize(sets_);
  // A set that has grown to its full size has taken 1, 2, 4 and 8 units.
  constexpr uint64_t most_units = (1 << (1 << room_bits)) - 1;
  const uint64_t capacity = 1 + sets_ * most_units;
  if (capacity <= capacity_) return;
  capacity_ = capacity;
  entries_.reset(static_cast<uint64_t*>(std::calloc(capacity_ * least_room, sizeof(uint64_t))));
}

uint32_t SectoredCache::take(uint32_t room_class) {
  const uint32_t place = used_ << room_bits | room_class;
  used_ += uint32_t(1) << room_class;
  return place;
}

// Sets fill from the front: all ways after an empty way are empty.
uint64_t& SectoredCache::use_other(uint64_t line, uint32_t& place) {
  if (place == 0) {
    touched_.push_back(static_cast<uint32_t>(&place - places_.data()));
    place = take(0);
    return *entries_of(place) = (line + 1) << tag_shift;
  }
  uint64_t* const set = entries_of(place);
  const unsigned room = room_of(place);
  uint64_t* const last = set + room - 1;
  uint64_t* found = set + (room > 1);
  while (found < last && *found != 0 && *found >> tag_shift != line + 1)
    ++found;
  uint64_t entry = *found;
  if (entry >> tag_shift != line + 1) {
    if (entry != 0 && room < ways_) return use_new(line, place);
    written_back_ += static_cast<unsigned>(std::popcount(entry >> dirty_shift & valid_bits));
    entry = (line + 1) << tag_shift;
  }
  std::copy_backward(set, found, found + 1);
  return *set = entry;
}

// Moves the set, which is full, to twice as much memory.
uint64_t& SectoredCache::use_new(uint64_t line, uint32_t& place) {
  const uint64_t* const before = entries_of(place);
  const unsigned lines = room_of(place);
  place = take((place & ((1 << room_bits) - 1)) + 1);
  uint64_t* const set = entries_of(place);
  std::copy_n(before, lines, set + 1);
  return *set = (line + 1) << tag_shift;
}

bool SectoredCache::write(uint64_t line, uint8_t sectors) {
  if (sets_ == 0) {
    written_back_ += static_cast<unsigned>(std::popcount(sectors));
    return false;
  }
  uint64_t& entry = use(line);
  const bool was_there = (entry & valid_bits) != 0;
  const bool was_dirty = (entry >> dirty_shift & valid_bits) != 0;
  entry |= uint64_t(sectors) << dirty_shift | sectors;
  if (!was_dirty && dirty_ways_ < ways_) clean_one_of(places_[set_index(line)]);
  return was_there;
}

// Writes back the least recently used dirty line of a set that exceeds its limit of dirty lines.
void SectoredCache::clean_one_of(uint32_t place) {
  uint64_t* const set = entries_of(place);
  uint64_t* last = nullptr;
  unsigned dirty = 0;
  for (unsigned way = 0; way < room_of(place); ++way)
    if (set[way] >> dirty_shift & valid_bits) {
      last = set + way;
      ++dirty;
    }
  if (dirty <= dirty_ways_) return;
  written_back_ += static_cast<unsigned>(std::popcount(*last >> dirty_shift & valid_bits));
  *last &= ~(valid_bits << dirty_shift);
}

uint8_t SectoredCache::present(uint64_t line) const {
  if (sets_ == 0) return 0;
  const uint32_t place = places_[set_index(line)];
  const uint64_t* const set = entries_of(place);
  for (unsigned way = 0; way < room_of(place); ++way)
    if (set[way] >> tag_shift == line + 1) return static_cast<uint8_t>(set[way] & valid_bits);
  return 0;
}

uint64_t SectoredCache::dirty_sectors() const {
  uint64_t sum = 0;
  for (uint32_t touched : touched_) {
    const uint32_t place = places_[touched];
    for (unsigned way = 0; way < room_of(place); ++way)
      sum += static_cast<unsigned>(std::popcount(entries_of(place)[way] >> dirty_shift & valid_bits));
  }
  return sum;
}

} // namespace ptxrewrite::timing
