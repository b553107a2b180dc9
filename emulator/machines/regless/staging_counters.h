// RegLess's machine as a launch asks for it, and what it counts (RegLess §5, §6).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

// Settings of a launch (LaunchRequest::machines): with them it runs on RegLess's machine, by the annotations in the
// text. Not with an observer.
struct StagingSettings {
  uint32_t entries = 512;         // registers that all shards of an SM hold together
  uint32_t compressor_lines = 12; // internal ones of each shard (48 per SM; Table 1 also says 16); 0: no compressor
  // False: instructions compute on registers of the emulator's own, wherever they are staged. The order of warps is the
  // same, so that a kernel whose results depend on it can be compared.
  bool stage = true;
  uint32_t multiprocessors = 16; // of the machine: blocks spread over them, one of them is looked at
};

inline constexpr uint32_t staging_shards = 4; // of an SM, one for each scheduler

// Where a preloaded register was found.
enum class PreloadSource : uint8_t { staged, compressor, l1, memory, undefined };
inline constexpr size_t preload_sources = 5; // undefined: nobody has written it

// Of one static region.
struct RegionRuns {
  uint64_t runs = 0;
  uint64_t active_cycles = 0; // until the last instruction issued
  uint64_t whole_cycles = 0;  // until the last register was written
  std::bitset<256> dropped;   // registers of which its invalidations met a copy
  // Runs, by where the input came from that took longest; without inputs: staged.
  std::array<uint64_t, preload_sources> slowest = {};
  uint64_t lookups = 0; // of inputs, in the bank that had most of them
};

// Results of a launch on that machine (LaunchResult::machines).
struct StagingCounters {
  uint64_t cycles = 0;       // of SMs, while they had blocks
  uint64_t instructions = 0; // machine instructions that warps issued; annotations not counted
  uint64_t metadata = 0;     // instructions that carry the annotations (§5.4)
  // Of the regions that ran, each run counting: machine instructions, cycles, registers.
  uint64_t regions = 0;
  uint64_t region_instructions = 0;
  uint64_t active_cycles = 0, whole_cycles = 0;
  uint64_t inputs = 0, live = 0, live_squared = 0;
  std::array<uint64_t, preload_sources> preloads = {}; // by PreloadSource
  uint64_t invalidations = 0;
  uint64_t written_back = 0;         // registers that left the unit for others
  uint64_t compressed = 0;           // of those
  uint64_t l1_loads = 0;             // requests for registers
  uint64_t l1_stores = 0;            //
  uint64_t below_l1 = 0;             // of the requests, and of what L1 gave up: those that went on to L2
  uint64_t read_below_l1 = 0;        // of these: lines that came from there
  uint64_t reads = 0, writes = 0;    // of entries, by instructions: what a register file would have been asked for
  uint64_t entry_reads = 0;          // of entries, by write-back
  uint64_t entry_writes = 0;         // of entries, by preloads that missed
  uint64_t tag_lookups = 0;          // one for each access and preload
  uint64_t windows = 0;              // of 100 cycles
  uint64_t window_registers = 0;     // different registers accessed, summed over windows
  uint64_t activation_waits = 0;     // cycles of shards in which a warp was ready for its region and found no room
  std::vector<RegionRuns> by_region; // of one kernel

  uint64_t l1_requests() const { return l1_loads + l1_stores; }
  StagingCounters& operator+=(const StagingCounters& other);
};

// All numbers with a name to show them by.
struct StagingCount {
  std::string_view name;
  uint64_t count = 0;
};
std::vector<StagingCount> named_counts(const StagingCounters& counters);

} // namespace ptxrewrite::emulator
