// Lines of an L1 cache that wait, locked, for the warps they were requested for (dac-isca17 §4.2): at most all but one
// way of each set, so that everybody else's accesses still find a place.
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
    full, // others hold what is needed: try again when they are done
  };
  // All of the lines (addresses that are multiples of 128, each once), or none. Of one request, lines beyond what a set
  // can lock stay unlocked and are taken out of `lines`. `fresh`: lines that nobody had locked before.
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
