#include "evaluate/score/affine_technique.h"

#include "emulator/timing/memory_system.h"
#include "ir/forms/dac.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::timing {
namespace {

// L1 ways per set, and those that may be locked: all but one (§4.2).
constexpr double l1_ways = 4, lockable_ways = 3;

const Cluster& stream_of(const Recording& recording) {
  return recording.sections[1 + static_cast<size_t>(ir::SectionKind::dac_affine)];
}

uint32_t sites_of(const std::vector<ir::Crossing>& crossings) {
  uint32_t sites = 0;
  for (const ir::Crossing& crossing : crossings)
    sites = std::max(sites, crossing.number + 1);
  return sites;
}

void use_queue(const ir::Crossing& crossing, QueueUse& use) {
  switch (crossing.kind) {
  case ir::CrossingKind::data:
    use.is_datum = true;
    use.address = crossing.number;
    break;
  case ir::CrossingKind::address:
    use.address = crossing.number;
    break;
  case ir::CrossingKind::predicate:
    use.predicate = crossing.number;
    break;
  case ir::CrossingKind::given_predicate:
    use.given = crossing.number;
    break;
  }
}

// Maps instructions of a function to their numbers in the recording.
std::map<ir::InstructionId, uint32_t> numbers_of(const Recording& recording, const ir::Function* function) {
  std::map<ir::InstructionId, uint32_t> numbers;
  for (uint32_t number = 0; number < recording.sites.size(); ++number)
    if (recording.sites[number].function == function) numbers[recording.sites[number].instruction] = number;
  return numbers;
}

// The number of active warps per SM: a small grid may not fill it.
double warps_of_sm(const ModelInput& input) {
  const double blocks = std::ceil(static_cast<double>(input.recording.blocks) / input.machine.sms);
  return std::max(std::min(blocks, static_cast<double>(input.resident_blocks)) * input.recording.warps_per_block, 1.0);
}

std::shared_ptr<const RunAhead> run_ahead_of(const ModelInput& input, const ir::Function& body, double queue_entries) {
  const Recording& recording = input.recording;
  const ir::Function& stream = *body.affine_stream;
  const std::vector<ir::Crossing> taken = ir::crossings(body), sent = ir::crossings(stream);
  auto ahead = std::make_shared<RunAhead>();
  const double warps = warps_of_sm(input);
  ahead->entries = std::max(std::floor(queue_entries / warps), 1.0);
  ahead->warps_of_scheduler = std::ceil(warps / input.machine.schedulers);
  ahead->lines = static_cast<double>(l1_bytes(input.machine, recording.shared_bytes * input.resident_blocks)) /
                 line_bytes * lockable_ways / l1_ways / warps;
  const ir::LatencyFacts& latency = input.machine.latency;
  ahead->hit_latency = latency.l1.known ? latency.l1.value : latency.shared.value;
  ahead->uses.resize(recording.sites.size());
  const std::map<ir::InstructionId, uint32_t> numbers = numbers_of(recording, &body);
  for (const ir::Crossing& crossing : taken) {
    const auto place = numbers.find(crossing.instruction);
    if (place == numbers.end()) continue;
    QueueUse& use = ahead->uses[place->second];
    use_queue(crossing, use);
    const AccessCounts& accesses = recording.global[place->second];
    if (accesses.accesses) use.lines = static_cast<double>(accesses.lines) / static_cast<double>(accesses.accesses);
  }
  const uint32_t sites = std::max(sites_of(taken), sites_of(sent));
  ahead->enqueued.resize(sites);
  ahead->taken.resize(sites);
  std::map<uint32_t, std::vector<ir::Crossing>> by_number;
  for (const auto& [instruction, number] : numbers_of(recording, &stream))
    for (const ir::Crossing& crossing : sent)
      if (crossing.instruction == instruction) by_number[number].push_back(crossing);
  const Cluster& steps = stream_of(recording);
  const std::vector<double> clocks = issue_clocks(steps, input.code, load_times(input), input.machine.issue_rate.value);
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    const auto place = by_number.find(steps.steps[i].number);
    if (place == by_number.end()) continue;
    for (const ir::Crossing& crossing : place->second)
      (crossing.sends ? ahead->enqueued : ahead->taken)[crossing.number].push_back(clocks[i]);
  }
  return ahead;
}

} // namespace

Technique affine_technique(const ModelInput& input, const emulator::AffineCounters& counters, uint32_t queue_entries) {
  Technique technique;
  const ir::Function* body = nullptr;
  for (const emulator::FunctionCounters& function : input.counters.functions)
    if (function.source->affine_stream) body = function.source;
  if (!body) return technique;
  technique.run_ahead = run_ahead_of(input, *body, queue_entries);
  technique.added_warps.push_back({&stream_of(input.recording), Cause::affine});
  const auto additions =
      static_cast<double>(counters.block_starts + counters.lines + counters.adjustments - counters.adjusted_lines);
  const auto comparisons = static_cast<double>(counters.comparisons);
  const auto by_lanes = static_cast<double>(counters.predicate_cases[2]);
  technique.demands[index(Cause::expansion)] = std::max(additions, comparisons - by_lanes * emulator::warp_size);
  technique.instructions = by_lanes;
  technique.demands[index(Cause::memory_port)] = static_cast<double>(counters.requested_lines);
  auto add = [&](EnergyEvent event, double times) { technique.events[static_cast<size_t>(event)] += times; };
  add(EnergyEvent::int_alu, additions + comparisons);
  // Data requested ahead is looked up in L1 once more when it is used.
  add(EnergyEvent::l1_read_hit, static_cast<double>(counters.requested_lines));
  add(EnergyEvent::affine_tuple, 2 * static_cast<double>(counters.tuples));
  add(EnergyEvent::affine_entry, 2 * static_cast<double>(counters.addresses + counters.predicates));
  return technique;
}

} // namespace ptxrewrite::timing
