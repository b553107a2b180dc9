// Regions of RegLess: parts of basic blocks whose registers are held in a small staging unit while a warp executes
// them, and the unit's metadata for each region (RegLess §4).
#pragma once

#include "ir/machine/registers/warp_liveness.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ptxrewrite::ir {

constexpr uint32_t staging_banks = 8; // (warp + register) & 7

struct RegionLimits {
  uint32_t live = 32;              // registers held at one time: a quarter of a shard of 128 entries
  uint32_t per_bank = 16;          // lines of one bank of the shard
  uint32_t least_instructions = 6; // minimum of machine instructions in a region after a split, if possible
};

struct Region {
  uint32_t block = 0;
  uint32_t begin = 0, end = 0; // instructions of the block, [begin, end)
  uint32_t weight = 0;         // machine instructions
  RegisterSet inputs;          // to preload: read, or partially written, before the region writes them fully
  RegisterSet last_reads;      // inputs whose stored copy becomes invalid: dead after the region, or overwritten in it
  RegisterSet outputs;         // written, and live after the region
  RegisterSet interior;        // first written in the region, and dead after it
  RegisterSet invalidated;     // dead in all lanes, possibly stored: their copies are deleted before the region starts
  uint32_t live = 0;           // maximum number of registers that the unit holds for it at one time
  std::array<uint8_t, staging_banks> banks{}; // the same per bank, for a warp whose number is a multiple of eight
  // Per instruction of the region, in order.
  std::vector<RegisterSet> erased;  // last access by any lane: the entry is freed after it
  std::vector<RegisterSet> evicted; // last access in the region, but live after it
};

// Returns valid regions if possible; a single instruction is a region whatever its needs. In program order.
std::vector<Region> create_regions(const RegisterProgram& program, const WarpLiveness& liveness,
                                   const RegionLimits& limits);

// Number of instructions that encode the marks (§5.4): one with a flag, the banks and three preloads or invalidations,
// one per six more, one per nine instructions for last uses; or one in total for at most two and four.
uint32_t metadata_instructions(const Region& region);

// Reports violations of the rules of Algorithm 1 or of the marks, one sentence each. Tracks each register through each
// region; shares no code with create_regions.
std::vector<std::string> verify_regions(const RegisterProgram& program, const WarpLiveness& liveness,
                                        const std::vector<Region>& regions, const RegionLimits& limits);

} // namespace ptxrewrite::ir
