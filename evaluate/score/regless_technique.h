// RegLess in the timing model, and the register files that its paper compares it with (RegLess §5, §6.1): what each
// brings into a launch as a Technique.
//
// RegLess has no register file. A warp runs a region only while entries of its scheduler's operand staging unit are
// reserved for it: from activation to the last instruction for what is live in the region, then for the registers whose
// results are still to come. So the unit is a resource like others: what the regions of a warp hold, for as long as a
// lone warp holds it, over what the unit has. Before it starts, a region waits for what the one before has still to
// write, and for its preloads; what other warps issue meanwhile hides that as any other wait. Annotations are taken by
// the decode stage (§5), two words a clock as dual issue needs them, and cost time only where there are more of them
// than instructions. Requests for registers take clocks of L1's port, what misses there bytes of L2.
//
// Where preloads are found, what is written back and how often comes from a run on RegLess's machine
// (emulator/machines/regless/staging_machine.h), which is functional; how long regions take comes from here.
#pragma once

#include "emulator/timing/model.h"

#include <array>
#include <vector>

namespace ptxrewrite::timing {

inline constexpr uint32_t banks_of_unit = 8; // of a scheduler's operand staging unit

struct StagedRegion {
  std::vector<uint32_t> sites;                // by number, in order
  std::array<uint8_t, banks_of_unit> banks{}; // entries that it reserves, of a warp whose number is a multiple of eight
  // Of its runs: the share whose last input came from the compressor, from L1, from below; how many inputs the bank
  // with most of them looked up.
  double from_compressor = 0, from_l1 = 0, from_memory = 0;
  double lookups = 0;
};

// One launch on RegLess's machine.
struct StagingRun {
  uint32_t entries = 512;        // of an SM
  uint32_t compressor_lines = 0; // of a scheduler's compressor
  std::vector<StagedRegion> regions;
  // All of the launch.
  double metadata = 0;                            // instructions that carry annotations
  double l1_loads = 0, l1_stores = 0;             // lines of 128 bytes
  double read_below_l1 = 0, written_below_l1 = 0; // of them, from and to L2
  double entry_reads = 0, entry_writes = 0;       // for write-back, by preloads
  double tag_lookups = 0;
  double compressor_lookups = 0;                      // preloads that missed
  double compressor_reads = 0, compressor_writes = 0; // of its lines: preloads from them, registers that have a pattern
};

// How many warps of a scheduler can hold the region at the same time, in banks of so many lines: register r of the
// scheduler's warp w lies in bank (w + r) mod 8. `warps`: that there are.
uint32_t fitting_warps(const std::array<uint8_t, banks_of_unit>& banks, uint32_t lines_per_bank, uint32_t warps);

// What a lone warp holds of something that resident warps share.
struct Holding {
  double clocks = 0; // of the warp
  double held = 0;   // sum of clocks times the share that is held
  // What `warps` of it wait beyond what one takes: none where all find room.
  double wait(double warps) const;
};
// Of a mean warp in a scheduler's staging unit, and in a renamed file.
Holding staging_holding(const ModelInput& input, const StagingRun& run);

Technique regless_technique(const ModelInput& input, const StagingRun& run);

// A two-level scheduler (Gebhart et al., ISCA 2011): 8 warps of a scheduler are active, the others wait for memory.
inline constexpr double two_level_warps = 8;

// RFV: registers of a warp take room in a smaller file from their first write to their last read (Jeon et al., MICRO
// 2015); table and annotations are free, as RegLess's authors took them (§6.1).
struct RenamedFile {
  uint32_t registers = 1024;             // of 32 lanes, of an SM
  double active_warps = two_level_warps; // of a scheduler
  std::vector<uint16_t> mapped;          // by site: registers of the warp that have room while it executes
};
Holding renamed_holding(const ModelInput& input, const RenamedFile& file);
Technique renamed_technique(const ModelInput& input, const RenamedFile& file);

// RFH: the compiler places values in a last result file, an operand file, or the main one (Gebhart et al., MICRO 2011).
enum class RegisterLevel : uint8_t { last_result, operand, main };
inline constexpr size_t register_levels = 3;
struct LevelAccesses {
  std::array<uint16_t, register_levels> reads{}, writes{};
  uint16_t fills = 0;                                 // of the operand file, by reads of the main one
  uint16_t registers_read = 0, registers_written = 0; // of a file without levels
};
struct HierarchicalFile {
  uint32_t operand_entries = 8; // of a warp that is active (RegLess Fig. 3)
  double active_warps = two_level_warps;
  std::vector<LevelAccesses> sites; // by site
};
// Of an access of each level, over one of the main file.
std::array<double, register_levels> energy_of_levels(const ir::Machine& machine, const HierarchicalFile& file);
Technique hierarchical_technique(const ModelInput& input, const HierarchicalFile& file);

// No energy for registers and the baseline's time: the bound of RegLess Fig. 15.
Technique without_register_energy(const ModelInput& input);

// Energy of a structure over that of the register file, for one access. RegLess §6.2: it grows with capacity, which is
// what this is: bits over bits. The one rule for entries, tags, compressors and smaller files.
// What one access of the register file takes, by warp: DARSIE's and R2D2's tables have 14.2 pJ for a read; for a write
// R2D2's (its Table 1) 20.9 pJ, DARSIE's 25.9 pJ. RegLess itself reports ratios alone.
inline constexpr double register_read_pj = 14.2, register_write_pj = 20.9, register_write_pj_of_darsie = 25.9;
double energy_share(const ir::Machine& machine, double bits);
double energy_of_registers(const ir::Machine& machine, double registers); // of 32 lanes of 32 bits
double energy_of_tags(const ir::Machine& machine, double entries);
double energy_of_compressor_states(const ir::Machine& machine, double registers);

} // namespace ptxrewrite::timing
