// Vector clocks of check mode.
#pragma once

#include "emulator/memory/shadow.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

inline constexpr unsigned maximum_warps = 32; // of a block
inline constexpr unsigned warps_of_group = 4;
inline constexpr unsigned maximum_agents = shadow_readers; // warps, and the matrix products of each warp group

// What a warp knows to have happened before: of the warps of its cluster (its block, where there is none), and of the
// other blocks.
struct Clock {
  // The latest clock of each agent, by rank and agent; then the latest write of each warp that asynchronous operations
  // may read, by rank and warp. Empty: nothing is known.
  std::vector<uint32_t> known;
  uint32_t others = 0; // the moment up to which all accesses of all blocks have happened before
  uint32_t fenced = 0; // the moment of the last fence
};

inline size_t numbers_of_clock(uint32_t ranks) {
  return size_t(ranks) * (maximum_agents + maximum_warps);
}

inline void join(Clock& clock, const Clock& other) {
  if (clock.known.size() < other.known.size()) clock.known.resize(other.known.size());
  for (size_t i = 0; i < other.known.size(); ++i)
    clock.known[i] = std::max(clock.known[i], other.known[i]);
  clock.others = std::max(clock.others, other.others);
  clock.fenced = std::max(clock.fenced, other.fenced);
}

} // namespace ptxrewrite::emulator
