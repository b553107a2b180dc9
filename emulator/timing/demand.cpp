// What a launch asks of issue slots, units, ports, caches and DRAM, in all: counters of all blocks, with what the
// recorded blocks show of accesses.
#include "emulator/timing/model.h"

#include "emulator/timing/instruction_fetch.h"
#include "emulator/timing/memory_port.h"
#include "emulator/timing/ratio.h"

#include <algorithm>

namespace ptxrewrite::timing {
namespace {

void add_demands(const Technique& technique, Demand& demand) {
  demand.instructions += technique.instructions;
  demand.issue_slots += technique.instructions;
  for (size_t i = 0; i < cause_count; ++i)
    demand.unit[i] += technique.demands[i];
  demand.l2_bytes += technique.l2_bytes;
  demand.l2_read_bytes += technique.l2_bytes;
  demand.dram_read_bytes += technique.dram_read_bytes;
  demand.dram_write_bytes += technique.dram_write_bytes;
}

// Which accesses are alike enough that those of one instruction may stand for those of another.
enum class AccessGroup : uint8_t { global_load, global_store, global_atomic, shared, constant, count };

AccessGroup group_of(const Site& site) {
  const ir::Form& form = site.function->form_of(site.instruction);
  if (ir::is_shared(form.space)) return AccessGroup::shared;
  if (form.space == ir::StateSpace::constant || ir::is_param(form.space)) return AccessGroup::constant;
  if (!form.effects.writes_memory) return AccessGroup::global_load;
  return form.effects.reads_memory ? AccessGroup::global_atomic : AccessGroup::global_store;
}

// Demand of memory instructions on the memory port, the caches and DRAM.
struct MemoryDemand {
  double performed = 0; // by warps with at least one lane
  double port_clocks = 0;
  double l1_accesses = 0, l1_hit_sectors = 0, sectors = 0, written_sectors = 0;
  double l2_bytes = 0, l2_read_bytes = 0, dram_read_bytes = 0;

  void add(const MemoryDemand& other, double times = 1) {
    performed += other.performed * times;
    port_clocks += other.port_clocks * times;
    l1_accesses += other.l1_accesses * times;
    l1_hit_sectors += other.l1_hit_sectors * times;
    sectors += other.sectors * times;
    written_sectors += other.written_sectors * times;
    l2_bytes += other.l2_bytes * times;
    l2_read_bytes += other.l2_read_bytes * times;
    dram_read_bytes += other.dram_read_bytes * times;
  }
};

// Adds up what all static instructions of a launch ask for.
class DemandSum {
public:
  explicit DemandSum(const ModelInput& input)
      : input_(input), recording_(input.recording), technique_(technique_of(input)) {
    for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
      if (counts.executions) add(number, counts);
    });
    add_unseen();
    add_memory();
    if (const double bytes = missed_instruction_bytes(input); bytes > 0)
      demand_.unit[index(Cause::instruction_fetch)] = bytes / input.machine.fetch.bytes_per_clock.value;
    add_demands(technique_, demand_);
  }
  const Demand& all() const { return demand_; }

private:
  void add(uint32_t number, const emulator::InstructionCounters& counts) {
    const SiteCode& code = input_.code[number];
    const SiteChange& change = technique_.at(number);
    if (!recording_.sites[number].section) demand_.steps += static_cast<double>(counts.executions);
    const double share = 1 - change.skipped;
    const double executions = static_cast<double>(counts.executions) * share;
    demand_.instructions += executions * code.instructions;
    demand_.issue_slots += executions * code.instructions * (change.slots - change.beside);
    demand_.uniform += executions * code.uniform;
    const uint32_t unit_weight = code.weight - code.other_weight;
    double clocks = executions * (unit_weight * code.unit_clocks + clocks_of_multiplications(number, code));
    if (code.is_absent) return;
    if (code.is_memory || recording_.global[number].accesses + recording_.shared[number].accesses)
      clocks = add_accesses(number, executions - static_cast<double>(counts.guarded_off) * share, clocks);
    if (code.unit == Cause::issue) return;
    demand_.unit[index(code.unit)] += clocks * change.unit;
    const double slots = executions * std::min(change.slots - change.beside, change.unit);
    demand_.unit_slots[index(code.unit)] += slots * unit_weight;
    if (code.other_weight == 0) return;
    demand_.unit[index(code.other_unit)] += executions * code.other_weight * code.other_clocks * change.unit;
    demand_.unit_slots[index(code.other_unit)] += slots * code.other_weight;
  }

  // Of a tcgen05.mma, on average: clocks of the tensor cores.
  double clocks_of_multiplications(uint32_t number, const SiteCode& code) const {
    if (recording_.multiplications.empty() || recording_.executions[number] == 0) return 0;
    return code.multiplication_clocks * static_cast<double>(recording_.multiplications[number]) /
           static_cast<double>(recording_.executions[number]);
  }

  // Accesses of an instruction that are performed so often. Returns the clocks of its unit, `clocks` at least.
  double add_accesses(uint32_t number, double performed, double clocks) {
    const auto seen = static_cast<double>(recording_.executions[number]);
    const AccessGroup group = group_of(recording_.sites[number]);
    if (seen == 0) {
      demand_.unseen_accesses += performed;
      unseen_.push_back({number, group, performed, clocks});
      return clocks;
    }
    const double scale = performed / seen; // from the blocks that were looked at to all
    const AccessCounts& global = recording_.global[number];
    const SectorCounts& sectors = traffic_of(input_).sectors[number];
    const auto reads = static_cast<double>(sectors.reads), hits = static_cast<double>(sectors.l1_hits);
    const auto writes = static_cast<double>(sectors.writes);
    const auto port_clocks =
        static_cast<double>(global.port_clocks + pass_clocks_ * recording_.shared[number].port_clocks +
                            recording_.constant[number].port_clocks);
    writes_seen_ += writes;
    MemoryDemand demand;
    demand.performed = performed;
    demand.port_clocks = scale * port_clocks;
    demand.l1_accesses = scale * static_cast<double>(global.accesses);
    demand.sectors = scale * reads;
    demand.l1_hit_sectors = scale * hits;
    demand.written_sectors = scale * writes;
    demand.l2_bytes = scale * (reads - hits + writes) * sector_bytes;
    demand.l2_read_bytes = scale * (reads - hits) * sector_bytes;
    demand.dram_read_bytes = scale * (static_cast<double>(sectors.dram) + sectors.cold) * sector_bytes;
    memory_.add(demand);
    seen_[static_cast<size_t>(group)].add(demand);
    return std::max(clocks, demand.port_clocks);
  }

  // Instructions in the gaps between windows (long straight code is longer than a window): each execution counts as
  // the mean of those of its group that were seen.
  void add_unseen() {
    for (const UnseenAccesses& unseen : unseen_) {
      const MemoryDemand& seen = seen_[static_cast<size_t>(unseen.group)];
      if (seen.performed <= 0) continue;
      const double times = unseen.performed / seen.performed;
      memory_.add(seen, times);
      const Cause unit = input_.code[unseen.number].unit;
      const double more = std::max(seen.port_clocks * times - unseen.clocks, 0.0);
      if (unit != Cause::issue) demand_.unit[index(unit)] += more * technique_.at(unseen.number).unit;
    }
  }

  void add_memory() {
    demand_.l1_accesses = memory_.l1_accesses;
    demand_.sectors = memory_.sectors;
    demand_.l1_hit_sectors = memory_.l1_hit_sectors;
    demand_.l2_bytes = memory_.l2_bytes;
    demand_.l2_read_bytes = memory_.l2_read_bytes;
    demand_.dram_read_bytes = memory_.dram_read_bytes;
    // As much of all writes as of those that were seen.
    demand_.dram_write_bytes = static_cast<double>(traffic_of(input_).dirty_written_back) * sector_bytes *
                               ratio(memory_.written_sectors, writes_seen_);
  }

  struct UnseenAccesses {
    uint32_t number = 0;
    AccessGroup group = AccessGroup::global_load;
    double performed = 0;
    double clocks = 0; // of the unit, counted already
  };

  const ModelInput& input_;
  const Recording& recording_;
  const unsigned pass_clocks_ = port_law(input_.machine).pass_clocks;
  const Technique& technique_;
  Demand demand_;
  MemoryDemand memory_;
  std::array<MemoryDemand, static_cast<size_t>(AccessGroup::count)> seen_;
  std::vector<UnseenAccesses> unseen_;
  double writes_seen_ = 0; // sectors
};

} // namespace

const Technique& technique_of(const ModelInput& input) {
  static const Technique none;
  return input.technique ? *input.technique : none;
}

Demand demand_of(const ModelInput& input) {
  return DemandSum(input).all();
}

} // namespace ptxrewrite::timing
