// Warps access memory in few patterns, again and again: what a pattern costs is found out once. A pattern is where the
// lanes' addresses lie beside the first lane's, and how that one lies in its 512-byte block (of shared memory: in its
// word, for banks are alike); lines, sectors and port
// clocks are functions of it. Nothing depends on what is remembered but time. Where addresses come from data, no
// pattern comes again: what comes for the first time is not kept.
#pragma once

#include "emulator/timing/memory_port.h"

#include <array>
#include <memory>
#include <vector>

namespace ptxrewrite::timing {

struct AccessCost {
  uint32_t port_clocks = 0;
  uint32_t sectors = 0;           // of global memory
  std::vector<LineRequest> lines; // of global memory; `line` counts from the first lane's line, and may wrap
  // For who asks: in which of its launches it has kept the lines, and where.
  uint64_t kept_in = 0;
  uint32_t kept_as = 0;
};

class AccessMemo {
public:
  explicit AccessMemo(const PortLaw& law) : law_(law) {}

  // Of an access by at least one lane, of shared or else of global memory. Valid until the next call. `asker`: a small
  // number; who asked before with the same one often asks for the same pattern.
  AccessCost& cost(const LaneAddresses& lanes, bool shared, uint32_t asker = 0);
  static uint64_t first_line(const LaneAddresses& lanes);

private:
  static constexpr unsigned warp_size = 32;
  static constexpr size_t set_count = 512; // a power of two
  static constexpr size_t ways = 4;
  struct Pattern {
    uint32_t mask = 0; // 0: none
    bool shared = false;
    uint64_t bytes = 0, phase = 0;
    AccessCost cost;
    std::array<int32_t, warp_size> offsets; // of lanes in the mask
    bool is(const LaneAddresses& lanes, uint64_t first, uint64_t phase, bool shared) const;
  };
  Pattern* find(const LaneAddresses& lanes, uint64_t first, uint64_t phase, bool shared);
  void find_out(const LaneAddresses& lanes, uint64_t first, bool shared, AccessCost& cost) const;

  // A loop's accesses fall into a few hundred patterns; where two were in one place, each would be found out again and
  // again.
  struct Set {
    std::array<uint32_t, ways> tags{};
    std::array<std::unique_ptr<Pattern>, ways> patterns;
    std::array<uint32_t, ways> seen_once{}; // tags
    uint8_t oldest = 0, oldest_seen = 0;
  };

  PortLaw law_;
  std::vector<Set> sets_ = std::vector<Set>(set_count);
  std::vector<Pattern*> last_of_ = std::vector<Pattern*>(1); // by asker; null: none
  AccessCost not_kept_;
};

} // namespace ptxrewrite::timing
