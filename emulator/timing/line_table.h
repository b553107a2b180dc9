// All lines of a recording, with the SMs that touch them and the sectors touched so far.
#pragma once

#include "emulator/timing/recorder.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace ptxrewrite::timing {

class LineTable {
public:
  struct Line {
    uint64_t tag = 0;    // line + 1
    uint32_t by_sm = 0;  // sum over SMs of touched sectors
    uint16_t sm = 0;     // the SM of the last touch
    uint8_t of_sm = 0;   // sectors touched by it
    uint8_t windows = 0; // sectors touched in even windows, and << 4 in odd ones
    uint8_t sectors = 0;
    uint64_t line() const { return tag - 1; }
    // SMs come one after another: all touches by one SM precede those by the next one.
    void touch(uint8_t wanted, uint16_t by, bool odd_window) {
      if (sm != by) of_sm = 0;
      sm = by;
      by_sm += static_cast<unsigned>(std::popcount(static_cast<uint8_t>(wanted & ~of_sm)));
      of_sm |= wanted;
      windows |= static_cast<uint8_t>(wanted << (odd_window ? 4 : 0));
    }
  };

  // Removes all lines. The memory is kept, and only its used places are cleared.
  void reset() {
    for (uint32_t place : used_)
      places_[place] = 0;
    used_.clear();
    lines_.clear();
  }
  // Adds the line if it is new. The reference is valid until the next line is added.
  Line& operator[](uint64_t line) {
    if ((lines_.size() + 1) * 2 > places_.size()) grow();
    if (lines_.capacity() == 0) lines_.reserve(size_t(1) << 15); // untouched memory costs nothing
    const size_t at = place_of(line);
    if (places_[at] == 0) {
      lines_.push_back({.tag = line + 1});
      used_.push_back(static_cast<uint32_t>(at));
      places_[at] = static_cast<uint32_t>(lines_.size());
    }
    return lines_[places_[at] - 1];
  }

  template <class Visit> void for_each(const Visit& visit) const {
    for (const Line& line : lines_)
      visit(line);
  }
  // Tries range `last` first, which is the most frequent result.
  static size_t range_of(const std::vector<LineRange>& ranges, uint64_t line, size_t last) {
    auto holds = [&](const LineRange& range) { return line >= range.first && line < range.past; };
    if (last < ranges.size() && holds(ranges[last])) return last;
    return static_cast<size_t>(std::ranges::find_if(ranges, holds) - ranges.begin());
  }

private:
  // The place of the line, or the free place where it belongs.
  size_t place_of(uint64_t line) const {
    // Neighbouring lines have neighbouring places.
    constexpr unsigned near_bits = 4;
    const uint64_t group = (line >> near_bits) * 0x9e3779b97f4a7c15u >> 20 << near_bits;
    size_t at = (group | (line & ((1 << near_bits) - 1))) & (places_.size() - 1);
    while (places_[at] && lines_[places_[at] - 1].tag != line + 1)
      at = (at + 1) & (places_.size() - 1);
    return at;
  }
  void grow() {
    places_.assign(places_.size() * 4, 0);
    for (size_t i = 0; i < lines_.size(); ++i) {
      const size_t at = place_of(lines_[i].tag - 1);
      places_[at] = static_cast<uint32_t>(i + 1);
      used_[i] = static_cast<uint32_t>(at);
    }
  }

  // Lines in the order of their first touch, so that neighbours are mostly close to each other.
  std::vector<Line> lines_;
  std::vector<uint32_t> places_ = std::vector<uint32_t>(4096); // a power of two; 0, or one more than the line's index
  std::vector<uint32_t> used_;                                 // of each line
};

} // namespace ptxrewrite::timing
