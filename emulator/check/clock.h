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

// The accesses that a warp knows to have happened before: those of warps of its cluster (its block, if it has none),
// and those of other blocks.
struct Clock {
  // The latest clock of each agent, by rank and agent; then that of the latest write of each warp which asynchronous
  // operations may read, by rank and warp; then the clock of each agent, by rank and agent, up to which its accesses to
  // tensor memory, but not others, are known (tcgen05.fence). Empty: no order is known.
  std::vector<uint32_t> known;
  uint32_t others = 0; // the moment up to which all accesses of all blocks have happened before
  uint32_t fenced = 0; // the moment of the last fence
};

inline size_t numbers_of_clock(uint32_t ranks) {
  return size_t(ranks) * (2 * maximum_agents + maximum_warps);
}

inline void join(Clock& clock, const Clock& other) {
  if (clock.known.size() < other.known.size()) clock.known.resize(other.known.size());
  for (size_t i = 0; i < other.known.size(); ++i)
    clock.known[i] = std::max(clock.known[i], other.known[i]);
  clock.others = std::max(clock.others, other.others);
  clock.fenced = std::max(clock.fenced, other.fenced);
}

} // namespace ptxrewrite::emulator
