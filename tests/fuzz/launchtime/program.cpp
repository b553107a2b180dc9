#include "tests/fuzz/launchtime/program.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::fuzz::launchtime {

void ByteSet::add(uint64_t first, uint64_t bytes) {
  low_ = std::min(low_, first);
  high_ = std::max(high_, first + bytes);
  for (uint64_t i = first; i < first + bytes && i < present_.size(); ++i)
    present_[i] = true;
}

bool ByteSet::meets(const ByteSet& other) const {
  for (uint64_t i = std::max(low_, other.low_); i < std::min(high_, other.high_); ++i)
    if (contains(i) && other.contains(i)) return true;
  return false;
}

bool ByteSet::range_meets(const ByteSet& other) const {
  return !empty() && !other.empty() && low_ < other.high_ && other.low_ < high_;
}

bool ByteSet::covers(const ByteSet& other) const {
  for (uint64_t i = other.low_; i < other.high_; ++i)
    if (other.contains(i) && !contains(i)) return false;
  return true;
}

std::vector<uint8_t> Kernel::arena() const {
  std::vector<uint8_t> bytes(arena_bytes);
  Random random(seed * 77 + 5);
  // Small values, too, so that comparisons have both outcomes.
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(random.one_in(4) ? random.below(4) : random.next());
  return bytes;
}

std::vector<uint64_t> Kernel::values(const Launch& launch, uint64_t arena_address) const {
  std::vector<uint64_t> values = launch.arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].is_pointer) values[i] += arena_address;
    if (parameters[i].kind == 'r') values[i] &= 0xffffffff;
  }
  return values;
}

size_t kind_index(char kind) {
  return static_cast<size_t>(std::strchr("phrdf", kind) - "phrdf");
}

unsigned bytes_of(const std::string& type) {
  return static_cast<unsigned>(std::stoul(type.substr(1))) / 8;
}

} // namespace ptxrewrite::fuzz::launchtime
