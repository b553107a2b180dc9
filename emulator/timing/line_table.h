// All lines of a recording: which SMs touch them, and which sectors have been touched so far.
#pragma once

#include "emulator/timing/recorder.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ptxrewrite::timing {

class LineTable {
public:
  struct Line {
    uint64_t tag = 0;                 // line + 1
    std::array<uint64_t, 4> sms = {}; // by sector: a bit each; where there are more than 64, some share one
    uint8_t sectors = 0;
    uint8_t windows = 0; // sectors touched in even ones, and << 4 in odd ones
    uint64_t line() const { return tag - 1; }
    void touch(uint8_t wanted, unsigned sm, bool odd_window) {
      for (unsigned sector = 0; sector < sms.size(); ++sector)
        sms[sector] |= uint64_t(wanted >> sector & 1) << sm;
      windows |= static_cast<uint8_t>(wanted << (odd_window ? 4 : 0));
    }
  };

  // No lines. Memory is used again, and only what was used of it cleared.
  void reset() {
    for (uint32_t place : used_)
      places_[place] = {};
    used_.clear();
  }
  // Adds it if it is new. Valid until the next one is added.
  Line& operator[](uint64_t line) {
    size_t at = place_of(line);
    while (places_[at].tag && places_[at].tag != line + 1)
      at = (at + 1) & (places_.size() - 1);
    if (!places_[at].tag) {
      if ((used_.size() + 1) * 2 > places_.size()) {
        grow();
        return (*this)[line];
      }
      places_[at].tag = line + 1;
      used_.push_back(static_cast<uint32_t>(at));
    }
    return places_[at];
  }

  template <class Visit> void for_each(const Visit& visit) const {
    for (uint32_t place : used_)
      visit(places_[place]);
  }
  // Mostly it is `last` again.
  static size_t range_of(const std::vector<LineRange>& ranges, uint64_t line, size_t last) {
    auto holds = [&](const LineRange& range) { return line >= range.first && line < range.past; };
    if (last < ranges.size() && holds(ranges[last])) return last;
    return static_cast<size_t>(std::ranges::find_if(ranges, holds) - ranges.begin());
  }

private:
  size_t place_of(uint64_t line) const {
    return static_cast<size_t>((line * 0x9e3779b97f4a7c15u) >> 20) & (places_.size() - 1);
  }
  void grow() {
    std::vector<Line> old(places_.size() * 2);
    old.swap(places_);
    for (uint32_t& place : used_) {
      size_t at = place_of(old[place].tag - 1);
      while (places_[at].tag)
        at = (at + 1) & (places_.size() - 1);
      places_[at] = old[place];
      place = static_cast<uint32_t>(at);
    }
  }

  std::vector<Line> places_ = std::vector<Line>(2048); // a power of two
  std::vector<uint32_t> used_;                         // of them, in the order in which lines came
};

} // namespace ptxrewrite::timing
