// Lines of an L1 cache that are locked until the warps take the data (dac-isca17 §4.2): at most all but one way of each
// set, so that other accesses can still allocate a line.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator {

inline constexpr uint64_t line_bytes = 128;

class LineLocks {
public:
  // The paper's baseline has 48 KB in 4 ways (Table 1).
  explicit LineLocks(unsigned sets = 96, unsigned ways = 4) : lockable_ways_(ways - 1), locked_(sets) {}

  enum class Outcome : uint8_t {
    locked,
    full, // other requests hold the ways: try again when they are unlocked
  };
  // Locks all of the lines (distinct multiples of 128), or none. Lines of the request in excess of the lockable ways of
  // a set are removed from `lines` and stay unlocked. `fresh`: the number of lines that were not locked before.
  Outcome lock(std::vector<uint64_t>& lines, unsigned& fresh);
  void unlock(std::span<const uint64_t> lines);
  bool is_locked(uint64_t line) const { return counts_.contains(line); }
  size_t locked_lines() const { return counts_.size(); }

private:
  unsigned set_of(uint64_t line) const { return static_cast<unsigned>(line / line_bytes % locked_.size()); }

  unsigned lockable_ways_;
  std::vector<unsigned> locked_; // lines, by set
  std::unordered_map<uint64_t, unsigned> counts_;
};

} // namespace ptxrewrite::emulator
