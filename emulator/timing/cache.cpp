#include "emulator/timing/cache.h"

#include "emulator/timing/memory_port.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::timing {
namespace {

constexpr uint64_t valid_bits = 0xf, dirty_shift = 4, tag_shift = 8;

// Tags are one more than lines, so that no entry of a line is 0.
constexpr uint64_t tag_of(uint64_t line) {
  return (line + 1) << tag_shift;
}
constexpr bool has_tag(uint64_t entry, uint64_t line) {
  return entry >> tag_shift == line + 1;
}

} // namespace

SectoredCache::SectoredCache(uint64_t bytes, unsigned ways) : ways_(ways) {
  const uint64_t lines = bytes / line_bytes;
  if (lines == 0) return;
  ways_ = static_cast<unsigned>(std::min<uint64_t>(ways, lines));
  sets_ = lines / ways_;
  entries_.reset(static_cast<uint64_t*>(std::calloc(sets_ * ways_, sizeof(uint64_t))));
}

uint64_t* SectoredCache::set_of(uint64_t line) {
  uint64_t hash = line * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93u;
  return entries_.get() + static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * sets_) >> 64) * ways_;
}

uint64_t& SectoredCache::use(uint64_t line) {
  uint64_t* set = set_of(line);
  if (has_tag(*set, line)) return *set;
  uint64_t* const end = set + ways_;
  uint64_t* found = std::find_if(set + 1, end, [&](uint64_t entry) { return has_tag(entry, line); });
  uint64_t entry;
  if (found == end) {
    --found;
    written_back_ += static_cast<unsigned>(std::popcount(*found >> dirty_shift & valid_bits));
    entry = tag_of(line);
  } else {
    entry = *found;
  }
  std::copy_backward(set, found, found + 1);
  *set = entry;
  return *set;
}

uint8_t SectoredCache::read(uint64_t line, uint8_t wanted) {
  if (sets_ == 0) return 0;
  uint64_t& entry = use(line);
  const auto hits = static_cast<uint8_t>(entry & wanted);
  entry |= wanted;
  return hits;
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
  const uint64_t* set = set_of(line);
  for (unsigned way = 0; way < ways_; ++way)
    if (has_tag(set[way], line)) return static_cast<uint8_t>(set[way] & valid_bits);
  return 0;
}

uint64_t SectoredCache::dirty_sectors() const {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < lines(); ++i)
    sum += static_cast<unsigned>(std::popcount(entries_[i] >> dirty_shift & valid_bits));
  return sum;
}

} // namespace ptxrewrite::timing
