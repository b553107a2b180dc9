#include "emulator/timing/estimators.h"

#include "emulator/timing/ratio.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ptxrewrite::timing {
namespace {

// The distribution of blocks on the SM that has the most of them; blocks are not split.
struct Placement {
  double sms = 1;      // with at least one block
  double resident = 1; // blocks per SM at a time
  double rounds = 1;
};

Placement placement(const ModelInput& input) {
  const auto blocks = static_cast<double>(std::max<uint64_t>(input.recording.blocks, 1));
  Placement place;
  place.sms = std::min<double>(input.machine.sms, blocks);
  place.resident = std::min<double>(std::max(input.resident_blocks, 1u), std::ceil(blocks / place.sms));
  place.rounds = std::max(blocks / (place.sms * place.resident), 1.0);
  return place;
}

double launch_of(const ModelInput& input) {
  return input.launch.constant.value;
}

double issue_clocks(const ModelInput& input, const Demand& demand) {
  const ir::Machine& machine = input.machine;
  return demand.issue_slots / (placement(input).sms * machine.schedulers * machine.issue_rate.value);
}

double roofline(const ModelInput& input, const Demand& demand) {
  const ir::Machine& machine = input.machine;
  const double sms = placement(input).sms;
  double longest = issue_clocks(input, demand);
  for (double unit : demand.unit)
    longest = std::max(longest, unit / sms);
  if (machine.memory.l2_bytes_per_clock.known)
    longest = std::max(longest, demand.l2_bytes / (machine.memory.l2_bytes_per_clock.value * sms));
  const double dram = machine.memory.achieved_dram_gb_per_second.value * 1000 / machine.clock_mhz;
  return std::max(longest, demand.dram_bytes() / dram);
}

// Memory instructions of all warps in the formula's terms.
struct MemoryInstructions {
  double coalesced = 0, uncoalesced = 0;
  double transactions = 0; // of uncoalesced instructions
  double latency = 0;      // sum over loads
  double loads = 0;
  double barriers = 0;
};

MemoryInstructions memory_instructions(const ModelInput& input) {
  const ir::LatencyFacts& facts = input.machine.latency;
  const double l2 = facts.l2.known ? facts.l2.value : facts.dram.value;
  const double l1 = facts.l1.known ? facts.l1.value : l2;
  MemoryInstructions all;
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    const auto performed = static_cast<double>(counts.executions - counts.guarded_off);
    if (input.code[number].waits == Waits::for_barrier) all.barriers += performed;
    const AccessCounts& accesses = input.recording.global[number];
    if (accesses.accesses == 0) return;
    const double lines = static_cast<double>(accesses.lines) / static_cast<double>(accesses.accesses);
    // An instruction with one line per access is coalesced; a mixed one counts as uncoalesced with its mean.
    (lines > 1 ? all.uncoalesced : all.coalesced) += performed;
    if (lines > 1) all.transactions += performed * lines;
    const LoadLevels& levels = traffic_of(input).levels[number];
    if (levels.loads == 0) return;
    const double share = performed / static_cast<double>(levels.loads);
    all.loads += performed;
    // First touches in the recording that are not the first of all SMs hit in L2.
    const double others_brought_it = std::max(static_cast<double>(levels.first_touches) - levels.cold, 0.0);
    all.latency += share * (static_cast<double>(levels.slowest_l1) * l1 +
                            (static_cast<double>(levels.slowest_l2) + others_brought_it) * l2 +
                            (static_cast<double>(levels.slowest_dram) - others_brought_it) * facts.dram.value);
  });
  return all;
}

} // namespace

MwpCwp mwp_cwp(const MwpCwpInput& in) {
  MwpCwp out;
  const double memory_instructions = in.coalesced + in.uncoalesced;
  const double compute = in.issue_clocks * in.instructions;
  if (memory_instructions <= 0) {
    out.clocks = compute * in.warps * in.repetitions;
    return out;
  }
  const double latency_uncoalesced = in.latency + (in.transactions - 1) * in.uncoalesced_departure;
  const double weight = in.uncoalesced / memory_instructions;
  const double latency = latency_uncoalesced * weight + in.latency * (1 - weight);
  const double departure = in.uncoalesced_departure * in.transactions * weight + in.coalesced_departure * (1 - weight);
  const double by_departure = latency / departure;
  // Bytes per clock that a warp requests from memory.
  const double bytes_per_clock = in.bytes / latency;
  const double by_bandwidth = in.bytes > 0 ? in.bandwidth / (bytes_per_clock * in.ports) : in.warps;
  out.mwp = std::max(std::min({by_departure, by_bandwidth, in.warps}), 1.0);
  const double memory = latency_uncoalesced * in.uncoalesced + in.latency * in.coalesced;
  out.cwp = std::min(ratio(memory + compute, compute), in.warps);
  const double compute_between = compute / memory_instructions * (out.mwp - 1);
  if (out.mwp >= in.warps && out.cwp >= in.warps)
    out.clocks = memory + compute + compute_between;
  else if (out.cwp >= out.mwp || compute > memory)
    out.clocks = memory * in.warps / out.mwp + compute_between;
  else
    out.clocks = latency + compute * in.warps;
  out.clocks += departure * (out.mwp - 1) * in.barriers * in.blocks;
  out.clocks *= in.repetitions;
  return out;
}

MwpCwpInput mwp_cwp_input(const ModelInput& input, const Demand& demand) {
  const ir::Machine& machine = input.machine;
  const Placement place = placement(input);
  const MemoryInstructions memory = memory_instructions(input);
  const double warps_per_block = std::max<double>(input.recording.warps_per_block, 1);
  const double warps = static_cast<double>(input.recording.blocks) * warps_per_block;
  const double schedulers = machine.schedulers;
  MwpCwpInput in;
  in.warps = std::max(place.resident * warps_per_block / schedulers, 1.0);
  in.ports = place.sms * schedulers;
  in.repetitions = place.rounds;
  in.issue_clocks = 1 / machine.issue_rate.value;
  in.instructions = demand.issue_slots / warps;
  in.coalesced = memory.coalesced / warps;
  in.uncoalesced = memory.uncoalesced / warps;
  in.transactions = memory.uncoalesced > 0 ? memory.transactions / memory.uncoalesced : 1;
  in.barriers = memory.barriers / warps;
  in.blocks = place.resident / schedulers;
  in.latency = memory.loads > 0 ? memory.latency / memory.loads : machine.latency.dram.value;
  // The transfer time of a line on the SM's link to L2, shared by its schedulers; without L2, on its share of DRAM.
  const double dram = machine.memory.achieved_dram_gb_per_second.value * 1000 / machine.clock_mhz;
  const double link =
      machine.memory.l2_bytes_per_clock.known ? machine.memory.l2_bytes_per_clock.value : dram / machine.sms;
  const double line_bytes = 128;
  const double accesses = memory.coalesced + memory.uncoalesced;
  const double lines = memory.coalesced + memory.transactions;
  // The part of a line that misses L1.
  const double moved = std::min(ratio(demand.l2_bytes, lines), line_bytes);
  in.coalesced_departure = in.uncoalesced_departure = std::max(moved / link * schedulers, 1.0);
  in.bytes = ratio(demand.dram_bytes(), accesses);
  in.bandwidth = dram;
  return in;
}

Estimates estimates_of(const ModelInput& input, const Demand& demand) {
  const double launch = launch_of(input);
  return {issue_clocks(input, demand) + launch, roofline(input, demand) + launch,
          mwp_cwp(mwp_cwp_input(input, demand)).clocks + launch};
}

} // namespace ptxrewrite::timing
