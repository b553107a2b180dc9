// The static instructions of a run as the machine issues them: their number, unit and result latency, and the registers
// that connect them.
#pragma once

#include "emulator/timing/recorder.h"
#include "ir/machine/figures/machine.h"
#include "ir/machine/select/lowering.h"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace ptxrewrite::timing {

// The causes of clocks: rows of the CPI stack. Units are resources; waits are for the result of an earlier
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
  instruction_fetch, // what schedulers' instruction caches miss
  staging,           // entries of RegLess' staging units
  expansion,         // DAC's units of addresses and predicates
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
  wait_queue,  // DAC: for an entry that the affine warp has not enqueued yet
  wait_staged, // RegLess: until the registers of a region are staged
  linear,      // R2D2's linear parts, before the instructions that read them
  misses,      // more misses than MSHRs
  affine,      // DAC's affine warp, where the other warps wait for its end
  barrier,     // warps of a block wait for one another
  imbalance,   // warps of a block end at different times
  tail,        // the last blocks do not fill the machine
  launch,
  count
};
inline constexpr size_t cause_count = static_cast<size_t>(Cause::count);
std::string_view spelling(Cause cause);

enum class Waits : uint8_t { for_unit, for_global_memory, for_barrier };

// The memory that an access refers to: decides which accesses may be reordered.
enum class AccessSpace : uint8_t { none, global, shared, constant };

struct SiteCode {
  uint32_t instructions = 0;        // of the machine, on either datapath; 0: a part of others
  uint32_t weight = 0, uniform = 0; // of them
  uint32_t copies = 1;              // that stand in the code, where its loop is unrolled
  Cause unit = Cause::issue;        // that the weight occupies, but for `other_weight` of it; issue: none
  double unit_clocks = 0;           // of the SM's unit, by machine instruction of a warp
  double multiplication_clocks = 0; // the same for each multiplication of tcgen05.mma, whose number is recorded
  // An expansion's reciprocals and conversions are the special unit's, the rest of it is not.
  Cause other_unit = Cause::issue;
  uint32_t other_weight = 0;
  double other_clocks = 0;
  double latency = 0;               // of the result; for global memory: of a hit in L1
  double step_latency = 0;          // between the instructions of an expansion, which is a chain
  Cause wait = Cause::wait_integer; // the cause of waits for the result
  Waits waits = Waits::for_unit;
  bool is_memory = false; // occupies the memory port for the clocks of its accesses
  bool is_absent = false; // an access to a local variable that the assembler keeps in registers
  // The assembler moves loads up in straight-line code to the point where their addresses are known (Walker).
  AccessSpace early_load = AccessSpace::none; // the space of a load that may move up
  AccessSpace stores = AccessSpace::none;     // the space of a store: later loads of that space do not move across it
  uint32_t piece = 0, place = 0;              // number of a straight-line piece without barriers; place in the function
  uint32_t read_words = 0, written_words = 0; // 32-bit registers of the register file
  uint32_t first_use = 0, uses = 0;
  uint32_t first_definition = 0, definitions = 0; // in MachineCode::registers
};

using LoweringOf = std::function<const ir::Lowering&(const ir::Function&)>;

// The source of machine instructions; all but `lowered` are for experiments. `apart`: neighbouring accesses of shared
// memory are not merged. `ptx`: each PTX instruction with an effect is one machine instruction, as in PTX simulators.
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
  // By number: the accesses that are absent; empty if there are none.
  std::vector<bool> absent_accesses() const;

private:
  std::vector<SiteCode> sites_; // by number
  std::vector<uint32_t> registers_;
  uint32_t register_count_ = 0;
  uint32_t piece_count_ = 0;
};

} // namespace ptxrewrite::timing
