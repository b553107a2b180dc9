// A cache of access costs: warps repeat a few access patterns, so the cost of each pattern is computed once. A pattern
// is the offsets of the lanes' addresses from the first lane's, and the offset of the first lane in its 512-byte block
// (in shared memory: in its word, since all banks are equal); lines, sectors and port clocks are functions of the
// pattern. The cache affects nothing but time. Accesses with data-dependent addresses repeat no pattern, so a pattern
// is not stored when it occurs for the first time.
#pragma once

#include "emulator/timing/memory_port.h"

#include <array>
#include <memory>
#include <vector>

namespace ptxrewrite::timing {

struct AccessCost {
  uint32_t port_clocks = 0;
  uint32_t sectors = 0;           // of global memory
  std::vector<LineRequest> lines; // of global memory; `line` is relative to the first lane's line, and may wrap
  // For the caller: the launch in which it stored the lines, and their index there.
  uint64_t kept_in = 0;
  uint32_t kept_as = 0;
};

class AccessMemo {
public:
  explicit AccessMemo(const PortLaw& law) : law_(law) {}

  // The cost of an access by at least one lane, to shared or else to global memory. Valid until the next call. `asker`:
  // a small number; its latest pattern is tried first, so that callers pass one number per instruction.
  AccessCost& cost(const LaneAddresses& lanes, bool shared, uint32_t asker = 0);
  static uint64_t first_line(const LaneAddresses& lanes);

private:
  static constexpr unsigned warp_size = 32;
  static constexpr size_t set_count = 512; // a power of two
  static constexpr size_t ways = 4;
  struct Pattern {
    uint32_t mask = 0; // 0: empty
    bool shared = false;
    uint64_t bytes = 0, phase = 0;
    AccessCost cost;
    std::array<int32_t, warp_size> offsets; // of lanes in the mask
    bool is(const LaneAddresses& lanes, uint64_t first, uint64_t phase, bool shared) const;
  };
  Pattern* find(const LaneAddresses& lanes, uint64_t first, uint64_t phase, bool shared);
  void find_out(const LaneAddresses& lanes, uint64_t first, bool shared, AccessCost& cost) const;

  // A loop's accesses have a few hundred patterns; sets of several ways keep colliding patterns from being computed
  // again and again.
  struct Set {
    std::array<uint32_t, ways> tags{};
    std::array<std::unique_ptr<Pattern>, ways> patterns;
    std::array<uint32_t, ways> seen_once{}; // tags
    uint8_t oldest = 0, oldest_seen = 0;
  };

  PortLaw law_;
  std::vector<Set> sets_ = std::vector<Set>(set_count);
  std::vector<Pattern*> last_of_ = std::vector<Pattern*>(1); // by asker; nullptr: none
  AccessCost not_kept_;
};

} // namespace ptxrewrite::timing
