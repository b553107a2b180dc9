// RegLess in the timing model, and the register files that its paper compares it with (RegLess §5, §6.1), each as a
// Technique for a launch.
//
// RegLess has no register file. A warp runs a region only while entries of its scheduler's operand staging unit are
// reserved for it: from activation to the last instruction for all values live in the region, then for registers with
// pending results. So the unit is modelled like other resources: entries held by the regions of a warp, times the
// duration for a lone warp, relative to the capacity. Before it starts, a region waits for pending writes of the
// preceding one, and for its preloads; instructions of other warps hide this like any other wait. Warps without entries
// do not access memory either: the caches are simulated with those whose regions fit (RegLess §6.4). The decode stage
// consumes annotations (§5), two words per clock as needed for dual issue, so they cost time only if they outnumber the
// instructions. Requests for registers take clocks of the L1 port, and misses take L2 bandwidth.
//
// The source of preloads and the number of write-backs come from a functional run on RegLess's machine
// (emulator/machines/regless/staging_machine.h); the duration of regions is computed here.
#pragma once

#include "emulator/timing/model.h"

#include <array>
#include <vector>

namespace ptxrewrite::timing {

inline constexpr uint32_t banks_of_unit = 8; // per operand staging unit of a scheduler

struct StagedRegion {
  std::vector<uint32_t> sites;                // instructions by number, in order
  std::array<uint8_t, banks_of_unit> banks{}; // entries reserved for a warp whose number is a multiple of eight
  // The share of the region's executions whose last input came from the compressor, from L1, from lower levels; and the
  // clocks until all inputs were looked up, in the order of their banks and where reads left the tags idle.
  double from_compressor = 0, from_l1 = 0, from_memory = 0;
  double lookups = 0;
  double operand_waits = 0; // clocks by which busy banks delay its instructions, all together
};

// One launch on RegLess's machine.
struct StagingRun {
  uint32_t entries = 512;        // per SM
  uint32_t compressor_lines = 0; // per scheduler's compressor
  std::vector<StagedRegion> regions;
  // Totals for the launch.
  double metadata = 0;                            // instructions that carry annotations
  double l1_loads = 0, l1_stores = 0;             // lines of 128 bytes
  double read_below_l1 = 0, written_below_l1 = 0; // those read from and written to L2
  double entry_reads = 0, entry_writes = 0;       // for write-back, by preloads
  double tag_lookups = 0;
  double compressor_lookups = 0;                      // preloads that missed
  double compressor_reads = 0, compressor_writes = 0; // of its lines: by preloads, and by registers that have a pattern
};

// The number of warps of a scheduler, at most `warps`, that can hold the region at the same time in banks with
// `lines_per_bank` lines: register r of the scheduler's warp w is in bank (w + r) mod 8.
uint32_t fitting_warps(const std::array<uint8_t, banks_of_unit>& banks, uint32_t lines_per_bank, uint32_t warps);

// The use of a shared resource by a lone warp.
struct Holding {
  double clocks = 0; // duration of the warp
  double held = 0;   // integral of the held share over the clocks
  // Additional clocks that `warps` such warps wait compared with one; 0 if all fit.
  double wait(double warps) const;
};
// For an average warp in a scheduler's staging unit, and in a renamed file.
Holding staging_holding(const ModelInput& input, const StagingRun& run);

// `caches`: after earlier launches on this machine; its accesses then pass them in the order of the warps whose regions
// fit. nullptr: those of the baseline.
Technique regless_technique(const ModelInput& input, const StagingRun& run, CacheState* caches = nullptr);

// A two-level scheduler (Gebhart et al., ISCA 2011): 8 warps per scheduler are active, the others wait for memory.
inline constexpr double two_level_warps = 8;

// RFV: registers of a warp occupy a smaller file from their first write to their last read (Jeon et al., MICRO 2015);
// table and annotations cost nothing, as RegLess's authors assume (§6.1).
struct RenamedFile {
  uint32_t registers = 1024;             // of 32 lanes, per SM
  double active_warps = two_level_warps; // per scheduler
  std::vector<uint16_t> mapped;          // by site: the warp's registers that are mapped while it executes
};
Holding renamed_holding(const ModelInput& input, const RenamedFile& file);
Technique renamed_technique(const ModelInput& input, const RenamedFile& file);

// RFH: the compiler assigns values to a last result file, an operand file, or the main one (Gebhart et al., MICRO
// 2011).
enum class RegisterLevel : uint8_t { last_result, operand, main };
inline constexpr size_t register_levels = 3;
struct LevelAccesses {
  std::array<uint16_t, register_levels> reads{}, writes{};
  uint16_t fills = 0;                                 // of the operand file, by reads of the main one
  uint16_t registers_read = 0, registers_written = 0; // of a file without levels
};
struct HierarchicalFile {
  uint32_t operand_entries = 8; // per active warp (RegLess Fig. 3)
  double active_warps = two_level_warps;
  std::vector<LevelAccesses> sites; // by site
};
// Energy of an access to each level, relative to one of the main file.
std::array<double, register_levels> energy_of_levels(const ir::Machine& machine, const HierarchicalFile& file);
Technique hierarchical_technique(const ModelInput& input, const HierarchicalFile& file);

// The baseline's time without register energy: the bound of RegLess Fig. 15.
Technique without_register_energy(const ModelInput& input);

// Energy of an access to a structure, relative to one of the register file. RegLess §6.2: it grows with capacity; used
// here as the ratio of bits, for entries, tags, compressors and smaller files alike. Energy of a register file access
// per warp: DARSIE's and R2D2's tables have 14.2 pJ for a read; for a write R2D2's (its Table 1) 20.9 pJ, DARSIE's 25.9
// pJ. RegLess itself reports only ratios.
inline constexpr double register_read_pj = 14.2, register_write_pj = 20.9, register_write_pj_of_darsie = 25.9;
double energy_share(const ir::Machine& machine, double bits);
double energy_of_registers(const ir::Machine& machine, double registers); // of 32 lanes of 32 bits
double energy_of_tags(const ir::Machine& machine, double entries);
double energy_of_compressor_states(const ir::Machine& machine, double registers);

} // namespace ptxrewrite::timing
