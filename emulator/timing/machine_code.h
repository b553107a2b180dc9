// The static instructions of a run as the machine issues them: how many, on which unit, how long the results take, and
// which registers tie them together.
#pragma once

#include "emulator/timing/recorder.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::timing {

// What a clock is spent on: rows of the CPI stack. Units are resources; waits are for the result of an earlier
// instruction.
enum class Cause : uint8_t {
  issue,
  unit_integer,
  unit_fp32,
  unit_fp64,
  unit_special,
  unit_matrix,
  unit_affine, // CAE's
  unit_scalar, // composite-hpca13's
  unit_barrier,
  memory_port,
  staging,   // entries of RegLess' staging units
  expansion, // DAC's units of addresses and predicates
  l2_bandwidth,
  dram_bandwidth,
  wait_integer,
  wait_fp32,
  wait_fp64,
  wait_special,
  wait_matrix,
  wait_shared,
  wait_constant,
  wait_l1,
  wait_l2,
  wait_dram,
  wait_queue,  // DAC: for what the affine warp has not brought yet
  wait_staged, // RegLess: until the registers of a region are there
  linear,      // R2D2's linear parts, before what reads them
  misses,      // more of them than there are registers for
  affine,      // DAC's affine warp, where the others wait for its end
  barrier,     // warps of a block wait for one another
  imbalance,   // warps of a block end at different times
  tail,        // the last blocks do not fill the machine
  launch,
  count
};
inline constexpr size_t cause_count = static_cast<size_t>(Cause::count);
std::string_view spelling(Cause cause);

enum class Waits : uint8_t { for_unit, for_global_memory, for_barrier };

// Which memory an access goes to: what may not change places with what.
enum class AccessSpace : uint8_t { none, global, shared, constant };

struct SiteCode {
  uint32_t instructions = 0;        // of the machine, on either datapath; 0: a part of others
  uint32_t weight = 0, uniform = 0; // of them
  Cause unit = Cause::issue;        // that the weight occupies, but for `other_weight` of it; issue: none
  double unit_clocks = 0;           // of the SM's unit, by machine instruction of a warp
  // An expansion's reciprocals and conversions are the special unit's, the rest of it is not.
  Cause other_unit = Cause::issue;
  uint32_t other_weight = 0;
  double other_clocks = 0;
  double latency = 0;               // of the result; of global memory: of a hit in L1
  double step_latency = 0;          // between the instructions of an expansion, which is a chain
  Cause wait = Cause::wait_integer; // what readers of the result wait for
  Waits waits = Waits::for_unit;
  bool is_memory = false; // occupies the memory port: as many clocks as its accesses take
  // The assembler issues loads as early in a straight piece of code as it knows their addresses (Walker).
  AccessSpace early_load = AccessSpace::none; // a load that may move up, by what it reads
  AccessSpace stores = AccessSpace::none;     // what later loads of that space do not pass
  uint32_t piece = 0, place = 0;              // straight code without barriers, numbered; the place in its function
  uint32_t read_words = 0, written_words = 0; // 32-bit registers of the register file
  uint32_t first_use = 0, uses = 0;
  uint32_t first_definition = 0, definitions = 0; // in MachineCode::registers
};

using LoweringOf = std::function<const ir::Lowering&(const ir::Function&)>;

// What the machine's instructions are; all but the first for experiments. Apart: the assembler joins no neighbours in
// shared memory. As PTX: each instruction of PTX that serves anything is one of the machine, as in simulators of PTX.
enum class CodeIs : uint8_t { lowered, apart, ptx };

class MachineCode {
public:
  MachineCode(const ir::Machine& machine, std::span<const Site> sites, const LoweringOf& lowering,
              CodeIs code = CodeIs::lowered);

  const SiteCode& operator[](uint32_t number) const { return sites_[number]; }
  size_t size() const { return sites_.size(); }
  std::span<const uint32_t> uses(const SiteCode& site) const {
    return std::span(registers_).subspan(site.first_use, site.uses);
  }
  std::span<const uint32_t> definitions(const SiteCode& site) const {
    return std::span(registers_).subspan(site.first_definition, site.definitions);
  }
  uint32_t register_count() const { return register_count_; }

private:
  std::vector<SiteCode> sites_; // by number
  std::vector<uint32_t> registers_;
  uint32_t register_count_ = 0;
  uint32_t piece_count_ = 0;
};

} // namespace ptxrewrite::timing
