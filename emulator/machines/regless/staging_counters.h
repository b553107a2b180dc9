// Settings and counters of launches on RegLess's machine (RegLess §5, §6).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

// Settings of a launch (LaunchRequest::machines): they run it on RegLess's machine, with the annotations in the text.
// Not supported with an observer.
struct StagingSettings {
  uint32_t entries = 512;         // registers held by all shards of an SM together
  uint32_t compressor_lines = 12; // internal lines of each shard (48 per SM; Table 1 also says 16); 0: no compressor
  // False: instructions compute on the emulator's own registers, not on staged ones. The order of warps is the same, so
  // that kernels whose results depend on it can be compared.
  bool stage = true;
  uint32_t issue_width = 2;      // machine instructions of a warp per cycle and scheduler, for a GTX 980's dual issue
  uint32_t multiprocessors = 16; // of the machine: the blocks are divided between them, one of them is simulated
};

inline constexpr uint32_t staging_shards = 4; // of an SM, one for each scheduler

// The source of a preloaded register.
enum class PreloadSource : uint8_t { staged, compressor, l1, memory, undefined };
inline constexpr size_t preload_sources = 5; // undefined: never written

// The runs of one static region.
struct RegionRuns {
  uint64_t runs = 0;
  uint64_t active_cycles = 0; // until the last instruction issued
  uint64_t whole_cycles = 0;  // until the last register was written
  std::bitset<256> dropped;   // registers of whose invalidations a copy was dropped
  // Runs by the source of the slowest input; without inputs: staged.
  std::array<uint64_t, preload_sources> slowest = {};
  uint64_t lookups = 0;       // cycles from activations until the tags of all inputs were looked up
  uint64_t operand_waits = 0; // cycles that results came later because banks were busy, summed over instructions
};

// Results of a launch on that machine (LaunchResult::machines).
struct StagingCounters {
  uint64_t cycles = 0;       // of SMs, while they had blocks
  uint64_t instructions = 0; // machine instructions issued by warps, without annotations
  uint64_t metadata = 0;     // instructions that carry the annotations (§5.4)
  // Sums over all runs of regions: machine instructions, cycles, registers.
  uint64_t regions = 0;
  uint64_t region_instructions = 0;
  uint64_t active_cycles = 0, whole_cycles = 0;
  uint64_t inputs = 0, live = 0, live_squared = 0;
  std::array<uint64_t, preload_sources> preloads = {}; // by PreloadSource
  uint64_t invalidations = 0;
  uint64_t written_back = 0;         // registers evicted from the unit for others
  uint64_t compressed = 0;           // of the written-back registers
  uint64_t l1_loads = 0;             // requests for registers
  uint64_t l1_stores = 0;            //
  uint64_t below_l1 = 0;             // of the requests and of L1's write-backs: those passed on to L2
  uint64_t read_below_l1 = 0;        // of these: lines read
  uint64_t reads = 0, writes = 0;    // of entries, by instructions: accesses of a conventional register file
  uint64_t entry_reads = 0;          // of entries, by write-back
  uint64_t entry_writes = 0;         // of entries, by preloads that missed
  uint64_t tag_lookups = 0;          // one per access and preload
  uint64_t windows = 0;              // of 100 cycles
  uint64_t window_registers = 0;     // different registers accessed, summed over windows
  uint64_t dual_issues = 0;          // instructions issued beside the one before them
  uint64_t operand_waits = 0;        // cycles of instructions whose operands were in busy banks
  uint64_t preload_waits = 0;        // cycles of preloads whose bank's tags were in use by reads
  uint64_t miss_register_waits = 0;  // cycles of requests to L1
  uint64_t activation_waits = 0;     // cycles of shards in which a ready warp had no room for its region
  std::vector<RegionRuns> by_region; // of one kernel

  uint64_t l1_requests() const { return l1_loads + l1_stores; }
  StagingCounters& operator+=(const StagingCounters& other);
};

// All counters with their names, for display.
struct StagingCount {
  std::string_view name;
  uint64_t count = 0;
};
std::vector<StagingCount> named_counts(const StagingCounters& counters);

} // namespace ptxrewrite::emulator
