#include "evaluate/score/regless_technique.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ptxrewrite::timing {
namespace {

constexpr double warp_lanes = 32, register_bits = 32 * 32;
constexpr double line_sectors = 4, flits_of_line = 1 + line_sectors; // a header and the line
// RegLess §5.3: the bit vector, plus two clocks if the register is compressed.
constexpr double compressor_clocks = 3, look_past_compressor_clocks = 1;
constexpr double words_decoded = 2; // per clock and scheduler, for dual issue

// Walks through a cluster's instructions as a lone warp issues them (walk.h), to find the resources held over time.
// Before each machine instruction, at(number, now) returns the time at which the holder lets it issue; issued(number,
// from, to, ready, words) reports its end at `to` and the time `ready` of its results.
template <class Holder>
double lone_walk(const Cluster& cluster, const ModelInput& input, const std::vector<LoadTime>& loads, Holder& holder) {
  const double slot = 1 / input.machine.issue_rate.value;
  std::vector<double> ready(input.code.register_count());
  double now = 0;
  for (const Step& step : cluster.steps) {
    const SiteCode& site = input.code[step.number];
    double sources = 0;
    for (uint32_t use : input.code.uses(site))
      sources = std::max(sources, ready[use]);
    double result = sources;
    if (site.instructions) {
      const double from = now;
      now = std::max(holder.at(step.number, now), sources);
      now += slot * site.instructions + (site.instructions - 1) * std::max(site.step_latency - slot, 0.0);
      const bool waits_for_load = site.waits == Waits::for_global_memory && !step.guarded_off;
      result = now - slot + (waits_for_load ? loads[step.number].latency : site.latency);
      holder.issued(step.number, from, now, result, site.written_words);
    }
    for (uint32_t definition : input.code.definitions(site))
      ready[definition] = result;
  }
  return now;
}

// Mean over the sampled warps. `make_holder` creates one holder per cluster; end(now) returns the holding and its end.
template <class MakeHolder> Holding mean_holding(const ModelInput& input, const MakeHolder& make_holder) {
  const std::vector<LoadTime> loads = load_times(input);
  Holding mean;
  double warps = 0;
  for (const Cluster& cluster : input.recording.clusters) {
    if (cluster.steps.empty()) continue;
    auto holder = make_holder();
    const Holding one = holder.end(lone_walk(cluster, input, loads, holder));
    const auto count = static_cast<double>(cluster.warps);
    const double times = count * static_cast<double>(cluster.length) / static_cast<double>(cluster.steps.size());
    warps += count;
    mean.clocks += times * one.clocks;
    mean.held += times * one.held;
  }
  if (warps > 0) mean.clocks /= warps, mean.held /= warps;
  return mean;
}

// Clocks before a region may issue, for its own preloads: each scheduler's manager activates one region per clock.
double preload_clocks(const ir::Machine& machine, const StagedRegion& region) {
  const double l2 = machine.latency.l2.known ? machine.latency.l2.value : machine.latency.dram.value;
  const double l1 = machine.latency.l1.known ? machine.latency.l1.value : l2;
  return std::max(region.lookups, 1.0) + region.from_compressor * compressor_clocks +
         region.from_l1 * (l1 + look_past_compressor_clocks) + region.from_memory * (l2 + look_past_compressor_clocks);
}

// By site: the region that begins there, or `none`.
constexpr uint32_t none = UINT32_MAX;
std::vector<uint32_t> region_starts(const ModelInput& input, const StagingRun& run) {
  std::vector<uint32_t> starts(input.recording.sites.size(), none);
  for (uint32_t region = 0; region < run.regions.size(); ++region) {
    const std::vector<uint32_t>& sites = run.regions[region].sites;
    const auto first =
        std::ranges::find_if(sites, [&](uint32_t number) { return input.code[number].instructions > 0; });
    if (first != sites.end()) starts[*first] = region;
  }
  return starts;
}

uint32_t lines_per_bank(const ir::Machine& machine, const StagingRun& run) {
  return run.entries / (machine.schedulers * banks_of_unit);
}

class RegionHolder {
public:
  RegionHolder(const ModelInput& input, const StagingRun& run, const std::vector<uint32_t>& starts)
      : input_(input), run_(run), starts_(starts),
        entry_share_(static_cast<double>(input.machine.schedulers) / run.entries) {}

  double at(uint32_t number, double now) {
    if (starts_[number] == none) return now;
    const double over = leave(now);
    region_ = starts_[number];
    started_ = over;
    return over + preload_clocks(input_.machine, run_.regions[region_]);
  }
  void issued(uint32_t, double, double, double ready, uint32_t words) {
    if (words) pending_.push_back({ready, words});
  }
  Holding end(double now) {
    const double over = leave(now);
    return {over, held_};
  }

private:
  struct Pending {
    double ready = 0;
    uint32_t words = 0;
  };
  // The time when the region's last register was written.
  double leave(double now) {
    double over = now, entries = 0;
    for (const Pending& result : pending_)
      if (result.ready > now) {
        over = std::max(over, result.ready);
        entries += result.words;
      }
    pending_.clear();
    if (region_ != none) {
      const uint32_t slots = input_.machine.occupancy.max_warps / input_.machine.schedulers;
      const uint32_t fitting = fitting_warps(run_.regions[region_].banks, lines_per_bank(input_.machine, run_), slots);
      held_ += (now - started_) / std::max(fitting, 1u) + (over - now) * entries * entry_share_;
    }
    region_ = none;
    return over;
  }

  const ModelInput& input_;
  const StagingRun& run_;
  const std::vector<uint32_t>& starts_;
  const double entry_share_;
  std::vector<Pending> pending_;
  uint32_t region_ = none;
  double started_ = 0, held_ = 0;
};

class MappedHolder {
public:
  explicit MappedHolder(const RenamedFile& file) : file_(file) {}
  double at(uint32_t, double now) { return now; }
  void issued(uint32_t number, double from, double to, double, uint32_t) {
    const double mapped = number < file_.mapped.size() ? file_.mapped[number] : 0;
    held_ += (to - from) * mapped / file_.registers;
  }
  Holding end(double now) { return {now, held_}; }

private:
  const RenamedFile& file_;
  double held_ = 0;
};

// The average number of such warps that fit at the same time.
double fitting(const Holding& holding) {
  return holding.held > 0 ? holding.clocks / holding.held : 0;
}

// Number of concurrent blocks on the SM with the most blocks.
double blocks_side_by_side(const ModelInput& input) {
  const double by_sm = std::ceil(static_cast<double>(input.recording.blocks) / input.machine.sms);
  return std::clamp(by_sm, 1.0, std::max<double>(input.resident_blocks, 1));
}

// For the whole launch, so that each wave gets its share by blocks.
double demand_of_wait(const ModelInput& input, double wait) {
  return wait * static_cast<double>(input.recording.blocks) / blocks_side_by_side(input);
}

double machine_instructions(const ModelInput& input) {
  double all = 0;
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    all += static_cast<double>(counts.executions) * input.code[number].instructions;
  });
  return all;
}

// Scales the energy of register reads and writes by lanes with `read(number)` and `write(number)`.
template <class Read, class Write>
void weigh_registers(const ModelInput& input, const Read& read, const Write& write, Technique& technique) {
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    const SiteCode& code = input.code[number];
    const auto lanes = static_cast<double>(counts.lanes);
    event(technique, EnergyEvent::rf_read) += lanes * code.read_words * (read(number) - 1);
    event(technique, EnergyEvent::rf_write) += lanes * code.written_words * (write(number) - 1);
  });
}

void add_staging_events(const ModelInput& input, const StagingRun& run, Technique& technique) {
  using enum EnergyEvent;
  const ir::Machine& machine = input.machine;
  const double entry = energy_of_registers(machine, run.entries);
  const auto same = [&](uint32_t) { return entry; };
  weigh_registers(input, same, same, technique);
  const double line = energy_of_registers(machine, run.compressor_lines * machine.schedulers);
  const double registers = machine.occupancy.registers / warp_lanes;
  const double states = run.compressor_lines ? energy_of_compressor_states(machine, registers) : 0;
  event(technique, rf_read) +=
      warp_lanes * (run.entry_reads * entry + run.tag_lookups * energy_of_tags(machine, run.entries) +
                    run.compressor_lookups * states + run.compressor_reads * line);
  event(technique, rf_write) += warp_lanes * (run.entry_writes * entry + run.compressor_writes * line);
  event(technique, ibuffer) += run.metadata;
  event(technique, icache_hit) += run.metadata;
  event(technique, l1_read_hit) += run.l1_loads - run.read_below_l1;
  event(technique, l1_read_miss) += run.read_below_l1;
  event(technique, l1_write_hit) += run.l1_stores;
  event(technique, noc_flit) += flits_of_line * (run.read_below_l1 + run.written_below_l1);
  event(technique, l2_read_hit) += line_sectors * run.read_below_l1;
  event(technique, l2_write_hit) += line_sectors * run.written_below_l1;
}

} // namespace

uint32_t fitting_warps(const std::array<uint8_t, banks_of_unit>& banks, uint32_t lines_per_bank, uint32_t warps) {
  std::array<uint32_t, banks_of_unit> taken{};
  for (uint32_t warp = 0; warp < warps; ++warp)
    for (uint32_t r = 0; r < banks_of_unit; ++r) {
      uint32_t& lines = taken[(warp + r) % banks_of_unit];
      lines += banks[r];
      if (lines > lines_per_bank) return warp;
    }
  return warps;
}

double Holding::wait(double warps) const {
  return beyond(warps * held, clocks);
}

Holding staging_holding(const ModelInput& input, const StagingRun& run) {
  const std::vector<uint32_t> starts = region_starts(input, run);
  return mean_holding(input, [&] { return RegionHolder(input, run, starts); });
}

Holding renamed_holding(const ModelInput& input, const RenamedFile& file) {
  return mean_holding(input, [&] { return MappedHolder(file); });
}

Technique regless_technique(const ModelInput& input, const StagingRun& run, CacheState* caches) {
  const ir::Machine& machine = input.machine;
  Technique technique;
  technique.sites.resize(input.recording.sites.size());
  const std::vector<uint32_t> starts = region_starts(input, run);
  for (const StagedRegion& region : run.regions) {
    double instructions = 0;
    for (uint32_t number : region.sites)
      instructions += input.code[number].instructions;
    for (uint32_t number : region.sites)
      if (instructions > 0)
        technique.sites[number].more_latency = region.operand_waits * input.code[number].instructions / instructions;
  }
  for (uint32_t number = 0; number < starts.size(); ++number) {
    if (starts[number] == none) continue;
    SiteChange& change = technique.sites[number];
    change.joins = true;
    change.early_stall = preload_clocks(machine, run.regions[starts[number]]);
    change.early_cause = Cause::wait_staged;
  }
  const double resident_warps = blocks_side_by_side(input) * input.recording.warps_per_block;
  const double of_scheduler = std::ceil(resident_warps / machine.schedulers);
  const Holding holding = staging_holding(input, run);
  technique.demands[index(Cause::staging)] = demand_of_wait(input, holding.wait(of_scheduler));
  technique.demands[index(Cause::memory_port)] = run.l1_loads + run.l1_stores;
  technique.l2_bytes = (run.read_below_l1 + run.written_below_l1) * line_bytes;
  const double instructions = machine_instructions(input);
  technique.instructions = std::max((run.metadata + instructions) / words_decoded - instructions, 0.0);
  technique.terms = {
      {"clocks of a lone warp, with its regions", holding.clocks, "clocks"},
      {"warps of a scheduler whose regions fit, mean", fitting(holding), ""},
      {"instructions that carry annotations", run.metadata, ""},
      {"lines of registers, from and to L1", run.l1_loads + run.l1_stores, ""},
      {"lines of registers, from and to L2", run.read_below_l1 + run.written_below_l1, ""},
      {"energy of an entry, over a register", energy_of_registers(machine, run.entries), ""},
  };
  add_staging_events(input, run, technique);
  if (caches && input.memory) {
    MemorySystem memory = *input.memory;
    const double fit = std::floor(std::max(fitting(holding), 1.0) * machine.schedulers);
    if (holding.held > 0 && fit < resident_warps) memory.active_warps = static_cast<uint32_t>(fit);
    technique.traffic = std::make_shared<const Traffic>(simulate(input.recording, memory, caches));
    technique.terms.push_back({"warps of an SM that access memory by turns", std::min(fit, resident_warps), ""});
  }
  return technique;
}

Technique renamed_technique(const ModelInput& input, const RenamedFile& file) {
  Technique technique;
  technique.active_warps = file.active_warps;
  const double resident_warps = blocks_side_by_side(input) * input.recording.warps_per_block;
  const Holding holding = renamed_holding(input, file);
  technique.demands[index(Cause::staging)] = demand_of_wait(input, holding.wait(resident_warps));
  const double share = energy_of_registers(input.machine, file.registers);
  technique.terms = {
      {"warps of an SM whose registers fit, mean", fitting(holding), ""},
      {"active warps of a scheduler (guess)", file.active_warps, ""},
      {"energy of a register, over the large file", share, ""},
  };
  const auto same = [&](uint32_t) { return share; };
  weigh_registers(input, same, same, technique);
  return technique;
}

std::array<double, register_levels> energy_of_levels(const ir::Machine& machine, const HierarchicalFile& file) {
  const double active = file.active_warps * machine.schedulers;
  return {energy_of_registers(machine, active), energy_of_registers(machine, active * file.operand_entries), 1};
}

Technique hierarchical_technique(const ModelInput& input, const HierarchicalFile& file) {
  const ir::Machine& machine = input.machine;
  Technique technique;
  technique.active_warps = file.active_warps;
  const std::array<double, register_levels> shares = energy_of_levels(machine, file);
  technique.terms = {
      {"active warps of a scheduler (guess)", file.active_warps, ""},
      {"energy of the last result file, over the main one", shares[0], ""},
      {"energy of the operand file, over the main one", shares[1], ""},
  };
  // Relative to the accesses of a file without levels; unclassified accesses use the main file.
  const auto share_of = [&](const std::array<uint16_t, register_levels>& accesses, uint16_t registers) {
    double sum = 0;
    for (size_t level = 0; level < register_levels; ++level)
      sum += accesses[level] * shares[level];
    return registers > 0 ? sum / registers : 1;
  };
  const auto at = [&](uint32_t number) { return number < file.sites.size() ? file.sites[number] : LevelAccesses{}; };
  weigh_registers(
      input, [&](uint32_t number) { return share_of(at(number).reads, at(number).registers_read); },
      [&](uint32_t number) { return share_of(at(number).writes, at(number).registers_written); }, technique);
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    event(technique, EnergyEvent::rf_write) +=
        static_cast<double>(counts.lanes) * at(number).fills * shares[static_cast<size_t>(RegisterLevel::operand)];
  });
  return technique;
}

Technique without_register_energy(const ModelInput& input) {
  Technique technique;
  const auto nothing = [](uint32_t) { return 0.0; };
  weigh_registers(input, nothing, nothing, technique);
  return technique;
}

double energy_share(const ir::Machine& machine, double bits) {
  return bits / (machine.occupancy.registers * (register_bits / warp_lanes));
}

double energy_of_registers(const ir::Machine& machine, double registers) {
  return energy_share(machine, registers * register_bits);
}

double energy_of_tags(const ir::Machine& machine, double entries) {
  constexpr double tag_bits = 6 + 8 + 2; // warp, register (§5.2); valid, dirty
  return energy_share(machine, entries * tag_bits);
}

double energy_of_compressor_states(const ir::Machine& machine, double registers) {
  constexpr double state_bits = 3; // §5.3
  return energy_share(machine, registers * state_bits);
}

} // namespace ptxrewrite::timing
