// The demand of one access by a warp on the memory system: 32-byte sectors, 128-byte lines, and clocks of the port
// shared by L1 and shared memory. Pure functions of the lanes' addresses.
#pragma once

#include "ir/machine/figures/machine.h"

#include <array>
#include <cstdint>
#include <span>

namespace ptxrewrite::timing {

inline constexpr uint64_t sector_bytes = 32;
inline constexpr uint64_t line_bytes = 128;

// A 128-byte line and the requested ones of its four sectors.
struct LineRequest {
  uint64_t line = 0; // address / 128
  uint8_t sectors = 0;
  bool operator==(const LineRequest&) const = default;
};

// Each lane of `mask` accesses `bytes` bytes at its address.
struct LaneAddresses {
  const uint64_t* addresses = nullptr; // 32
  uint32_t mask = 0;
  uint64_t bytes = 0;
};

// The distinct lines that a warp accesses, in the order of the first lane that requests each.
class WarpLines {
public:
  explicit WarpLines(const LaneAddresses& lanes);
  std::span<const LineRequest> get() const { return {lines_.data(), count_}; }

private:
  void add(uint64_t line, uint8_t sectors);
  // At most 32 lanes of 128 bytes, not aligned.
  std::array<LineRequest, 64> lines_;
  size_t count_ = 0;
  uint64_t highest_ = 0; // the highest line so far
};

// The port's parameters of a GPU generation.
struct PortLaw {
  unsigned banks = 32;           // of 4 bytes; a power of two
  unsigned lanes_at_a_time = 32; // of 4-byte accesses
  bool block_tags = false;       // Hopper: lines of one 512-byte block share a tag look-up
  unsigned pass_clocks = 1;      // for one word of each bank
  unsigned fragment_copies = 1;  // lanes that load an element of A or B with wmma.load, of 16-bit elements
};
PortLaw port_law(const ir::Machine& machine);

// The largest number of different 4-byte words in one bank, at least 1. 8-byte accesses are made in two halves of the
// warp, 16-byte accesses in four quarters: the numbers of the parts are added up.
uint32_t bank_degree(const PortLaw& law, const LaneAddresses& lanes);
// Clocks for tag look-ups: one per line; on Hopper min(blocks of 512 bytes, ceil(lines / 4) + 1).
uint32_t tag_clocks(const PortLaw& law, std::span<const LineRequest> lines);
// Passes of the port that an access to shared memory takes, each of `pass_clocks`.
uint32_t shared_passes(const PortLaw& law, const LaneAddresses& lanes);
// Port clocks of an access to global or local memory.
uint32_t global_port_clocks(const PortLaw& law, const LaneAddresses& lanes, std::span<const LineRequest> lines);

} // namespace ptxrewrite::timing
