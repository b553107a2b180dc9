#include "evaluate/score/comparator_techniques.h"

#include "emulator/machines/composite/composite_registers.h"
#include "emulator/timing/energy.h"
#include "emulator/timing/ratio.h"

#include <algorithm>

namespace ptxrewrite::timing {
namespace {

using emulator::warp_size;

// A base and a stride, which an affine unit computes instead of the lanes.
constexpr double affine_operations = 2;
// composite-hpca13 Table 4, energy per access: of the main file per lane (128 bits serve four lanes), of its halves, of
// the scalar file per warp, of the composite file per lane. Table 5: the comparison stage, relative to the execution
// stage.
constexpr double main_access = 28.0 / 4;
constexpr double half_access = 14.0 / 4 / main_access, scalar_access = 1.4 / main_access;
constexpr double composite_read = 0.71 / main_access, composite_write = 0.74 / main_access;
constexpr double comparison_stage = 0.043;

// Subtracts the execution energy of `lanes` lane operations.
void spare_unit(const ModelInput& input, uint32_t number, double lanes, Technique& technique) {
  const Site& site = input.recording.sites[number];
  const SiteCode& code = input.code[number];
  const EnergyEvent which = unit_event(code.unit, site.function->form_of(site.instruction));
  if (which != EnergyEvent::count) event(technique, which) -= lanes * code.weight;
}

template <class Value> Value value_at(const std::map<uint32_t, Value>& values, uint32_t number) {
  const auto place = values.find(number);
  return place == values.end() ? Value() : place->second;
}

} // namespace

Technique affine_unit_technique(const ModelInput& input, const std::map<uint32_t, double>& affine) {
  Technique technique;
  technique.sites.resize(input.recording.sites.size());
  const double one_clock = std::min(input.machine.issue_rate.value, 1.0); // in slots
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    const double share = value_at(affine, number);
    const SiteCode& code = input.code[number];
    if (share <= 0 || code.weight == 0) return;
    technique.sites[number].slots = 1 - share * (1 - one_clock);
    technique.sites[number].unit = 1 - share;
    const double executions = share * static_cast<double>(counts.executions);
    technique.demands[index(Cause::unit_affine)] += executions * code.weight / input.machine.schedulers;
    const double spared = share * static_cast<double>(counts.lanes) * (1 - affine_operations / warp_size);
    spare_unit(input, number, spared, technique);
    event(technique, EnergyEvent::rf_read) -= spared * code.read_words;
    event(technique, EnergyEvent::rf_write) -= spared * code.written_words;
  });
  return technique;
}

Technique ideal_technique(const ModelInput& input, const std::map<uint32_t, double>& skipped) {
  Technique technique;
  technique.sites.resize(input.recording.sites.size());
  for (const auto& [number, share] : skipped)
    if (number < technique.sites.size()) technique.sites[number].skipped = share;
  return technique;
}

Technique prefetch_technique(const ModelInput& input, const std::map<uint32_t, emulator::LoadPrefetches>& loads,
                             const emulator::PrefetchCounts& counts) {
  Technique technique;
  technique.sites.resize(input.recording.sites.size());
  for (const auto& [number, load] : loads) {
    if (number >= technique.sites.size()) continue;
    auto share = [](uint64_t part, uint64_t whole) {
      return ratio(static_cast<double>(part), static_cast<double>(whole));
    };
    technique.sites[number].prefetched = {.of_misses = share(load.covered, load.misses),
                                          .of_accesses = share(load.covered, load.accesses),
                                          .trips = share(load.trips, load.covered),
                                          .warps = share(load.warps, load.covered)};
  }
  // Unused prefetched lines are fetched all the same, from the same levels as others.
  const auto unused = static_cast<double>(counts.prefetched - std::min(counts.covered, counts.prefetched));
  const Demand demand = demand_of(input);
  const double from_dram = std::min(ratio(demand.dram_read_bytes, demand.l2_bytes), 1.0);
  constexpr double sectors = static_cast<double>(line_bytes) / sector_bytes;
  technique.l2_bytes = unused * line_bytes;
  technique.dram_read_bytes = unused * line_bytes * from_dram;
  event(technique, EnergyEvent::noc_flit) += unused * (1 + sectors);
  event(technique, EnergyEvent::l2_read_hit) += unused * sectors * (1 - from_dram);
  event(technique, EnergyEvent::l2_read_miss) += unused * sectors * from_dram;
  event(technique, EnergyEvent::dram_read) += unused * sectors * from_dram;
  return technique;
}

Technique datapath_technique(const ModelInput& input, const std::map<uint32_t, DatapathShares>& shares,
                             const DatapathAccesses& accesses) {
  Technique technique;
  technique.sites.resize(input.recording.sites.size());
  const double stall = std::min(input.machine.issue_rate.value, 1.0); // one clock, in slots
  double unit_events = 0;
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    const DatapathShares share = value_at(shares, number);
    const SiteCode& code = input.code[number];
    if (code.weight == 0) return;
    SiteChange& site = technique.sites[number];
    site.slots = 1 + share.stalled * stall;
    site.beside = share.scalar + share.paired / 2;
    site.unit = std::max(1 - share.scalar - share.paired / 2, 0.0);
    const double executions = share.scalar * static_cast<double>(counts.executions);
    technique.demands[index(Cause::unit_scalar)] +=
        executions * ((code.weight - code.other_weight) * code.unit_clocks + code.other_weight * code.other_clocks);
    const auto lanes = static_cast<double>(counts.lanes);
    spare_unit(input, number, lanes * (share.scalar * (1 - 1.0 / warp_size) + share.paired / 2), technique);
    if (code.unit >= Cause::unit_integer && code.unit <= Cause::unit_special) unit_events += lanes * code.weight;
  });
  event(technique, EnergyEvent::int_alu) += comparison_stage * unit_events;
  const double now = accesses.full + accesses.half * half_access + accesses.scalar * scalar_access / warp_size;
  if (accesses.all > 0) {
    const EventCounts before = events_of(input);
    for (EnergyEvent which : {EnergyEvent::rf_read, EnergyEvent::rf_write})
      event(technique, which) += (now / accesses.all - 1) * before[static_cast<size_t>(which)];
  }
  return technique;
}

Technique left_to_scalar_technique(const ModelInput& input, std::map<uint32_t, DatapathShares> shares,
                                   const DatapathAccesses& accesses) {
  static const Technique nothing;
  const Technique& skipping = input.technique ? *input.technique : nothing;
  for (auto& [number, share] : shares)
    share.scalar = std::max(share.scalar - skipping.at(number).skipped, 0.0);
  Technique technique = datapath_technique(input, shares, accesses);
  for (uint32_t number = 0; number < technique.sites.size(); ++number) {
    SiteChange& site = technique.sites[number];
    site.skipped = skipping.at(number).skipped;
    // Relative to the executed instructions.
    site.beside = std::min(ratio(site.beside, 1 - site.skipped), 1.0);
    site.unit = 1 - site.beside;
  }
  technique.branch_syncs = skipping.branch_syncs;
  return technique;
}

void add_composite_energy(const emulator::Counters& counters, Technique& technique) {
  const emulator::CompositeCounts composites = emulator::composite_counts(counters);
  if (composites.composites == 0) return;
  const double lanes = static_cast<double>(composites.lanes) / static_cast<double>(composites.composites);
  event(technique, EnergyEvent::rf_read) += lanes * static_cast<double>(composites.slot_reads) * composite_read;
  event(technique, EnergyEvent::rf_write) += lanes * static_cast<double>(composites.slot_writes) * composite_write;
}

} // namespace ptxrewrite::timing
