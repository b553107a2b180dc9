// Regions of RegLess: pieces of basic blocks whose registers a small staging unit holds while a warp runs them, and
// what the unit has to be told of each (RegLess §4).
#pragma once

#include "ir/machine/registers/warp_liveness.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::ir {

constexpr uint32_t staging_banks = 8; // (warp + register) & 7

struct RegionLimits {
  uint32_t live = 32;              // registers at one time: a quarter of a shard of 128 entries
  uint32_t per_bank = 16;          // lines of one bank of the shard
  uint32_t least_instructions = 6; // machine instructions in a region, where a split allows it
};

struct Region {
  uint32_t block = 0;
  uint32_t begin = 0, end = 0; // instructions of the block, the end left out
  uint32_t weight = 0;         // machine instructions
  RegisterSet inputs;          // preloaded: read, or written in part, before the region writes all of them
  RegisterSet last_reads;      // of the inputs: the stored copy goes, being dead behind the region or out of date
  RegisterSet outputs;         // written, and needed behind
  RegisterSet interior;        // written for the first time in the region, and needed nowhere else
  RegisterSet invalidated;     // not needed by any lane any more, and possibly stored: their copies go before it starts
  uint32_t live = 0;           // most registers that the unit holds for it at one time
  std::array<uint8_t, staging_banks> banks{}; // the same for each bank, of a warp whose number is a multiple of eight
  // Per instruction of the region, in order.
  std::vector<RegisterSet> erased;  // accessed for the last time by any lane: the entry is free behind it
  std::vector<RegisterSet> evicted; // accessed for the last time in the region, but needed behind it
};

// Valid regions where that can be; a single instruction is a region whatever it needs. In the order of the program.
std::vector<Region> create_regions(const RegisterProgram& program, const WarpLiveness& liveness,
                                   const RegionLimits& limits);

// Instructions that carry the marks (§5.4): a flag with the banks and three preloads or invalidations, six more in each
// further one, one for the last uses of nine instructions; or one in all for at most two and four.
uint32_t metadata_instructions(const Region& region);

// What breaks the rules of Algorithm 1 or of the marks, one sentence each. Follows each register through each region;
// shares no code with create_regions.
std::vector<std::string> verify_regions(const RegisterProgram& program, const WarpLiveness& liveness,
                                        const std::vector<Region>& regions, const RegionLimits& limits);

} // namespace ptxrewrite::ir
