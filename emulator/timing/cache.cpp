#include "emulator/timing/cache.h"

#include "emulator/timing/memory_port.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

constexpr uint64_t valid_bits = 0xf, dirty_shift = 4;

} // namespace

void SectoredCache::reset(uint64_t bytes, unsigned ways) {
  for (uint32_t set : touched_)
    places_[set] = 0;
  touched_.clear();
  written_back_ = 0;
  const uint64_t lines = bytes / line_bytes;
  sets_ = 0;
  if (lines == 0) return;
  ways_ = static_cast<unsigned>(std::min<uint64_t>(ways, lines));
  sets_ = lines / ways_;
  if (places_.size() < sets_) places_.resize(sets_);
  entries_.assign(ways_, 0);
}

// Sets fill from the front: behind an empty way there is nothing.
uint64_t& SectoredCache::use_other(uint64_t line, uint32_t& place) {
  if (place == 0) {
    touched_.push_back(static_cast<uint32_t>(&place - places_.data()));
    place = static_cast<uint32_t>(entries_.size() / ways_);
    entries_.resize(entries_.size() + ways_);
    return entries_[uint64_t(place) * ways_] = (line + 1) << tag_shift;
  }
  uint64_t* const set = entries_.data() + uint64_t(place) * ways_;
  uint64_t* const last = set + ways_ - 1;
  uint64_t* found = set + (ways_ > 1);
  while (found < last && *found != 0 && *found >> tag_shift != line + 1)
    ++found;
  uint64_t entry = *found;
  if (entry >> tag_shift != line + 1) {
    written_back_ += static_cast<unsigned>(std::popcount(entry >> dirty_shift & valid_bits));
    entry = (line + 1) << tag_shift;
  }
  std::copy_backward(set, found, found + 1);
  return *set = entry;
}

bool SectoredCache::write(uint64_t line, uint8_t sectors) {
  if (sets_ == 0) {
    written_back_ += static_cast<unsigned>(std::popcount(sectors));
    return false;
  }
  uint64_t& entry = use(line);
  const bool was_there = (entry & valid_bits) != 0;
  entry |= uint64_t(sectors) << dirty_shift | sectors;
  return was_there;
}

uint8_t SectoredCache::present(uint64_t line) const {
  if (sets_ == 0) return 0;
  const uint64_t* set = entries_.data() + uint64_t(places_[set_index(line)]) * ways_;
  for (unsigned way = 0; way < ways_; ++way)
    if (set[way] >> tag_shift == line + 1) return static_cast<uint8_t>(set[way] & valid_bits);
  return 0;
}

uint64_t SectoredCache::dirty_sectors() const {
  uint64_t sum = 0;
  for (uint64_t entry : entries_)
    sum += static_cast<unsigned>(std::popcount(entry >> dirty_shift & valid_bits));
  return sum;
}

} // namespace ptxrewrite::timing
