#include "emulator/timing/model.h"

#include "emulator/timing/memory_port.h"
#include "emulator/timing/memory_system.h"
#include "emulator/timing/ratio.h"

#include <algorithm>
#include <cmath>

namespace ptxrewrite::timing {
namespace {

// Bytes per clock of the whole chip.
double dram_bytes_per_clock(const ir::Machine& machine) {
  return machine.memory.achieved_dram_gb_per_second.value * 1000 / machine.clock_mhz;
}

// Units that every scheduler has its share of.
bool in_pipeline(Cause unit) {
  return unit >= Cause::unit_integer && unit <= Cause::unit_scalar;
}

struct LevelShares {
  double l1 = 0, l2 = 0, dram = 0; // clocks that each level adds to the mean latency
  double sum() const { return l1 + l2 + dram; }
};

// For one load: the share of executions whose slowest level is each level, times its latency. First touches that are
// not the first of all SMs, or that find data left in L2 by an earlier launch, count as L2.
LevelShares level_shares(const ir::Machine& machine, const LoadLevels& levels) {
  const ir::LatencyFacts& latency = machine.latency;
  const double l2_latency = latency.l2.known ? latency.l2.value : latency.dram.value;
  const double l1_latency = latency.l1.known ? latency.l1.value : l2_latency;
  const double others_brought_it = std::max(static_cast<double>(levels.first_touches) - levels.cold, 0.0);
  const auto loads = static_cast<double>(levels.loads);
  return {ratio(static_cast<double>(levels.slowest_l1), loads) * l1_latency,
          ratio(static_cast<double>(levels.slowest_l2) + others_brought_it, loads) * l2_latency,
          ratio(static_cast<double>(levels.slowest_dram) - others_brought_it, loads) * latency.dram.value};
}

std::vector<LoadTime> load_times_by_level(const ModelInput& input, std::vector<LevelShares>& shares) {
  const Recording& recording = input.recording;
  const unsigned pass_clocks = port_law(input.machine).pass_clocks;
  std::vector<LoadTime> times(recording.sites.size());
  shares.resize(times.size());
  for (size_t number = 0; number < times.size(); ++number) {
    const LoadLevels& levels = traffic_of(input).levels[number];
    LoadTime& time = times[number];
    time.latency = input.code[static_cast<uint32_t>(number)].latency;
    shares[number].l1 = time.latency;
    if (levels.loads == 0) {
      // Accesses to different words of one bank are serialised, and so are different constants.
      const auto further = [](const AccessCounts& counts) {
        return counts.accesses
                   ? ratio(static_cast<double>(counts.port_clocks), static_cast<double>(counts.accesses)) - 1
                   : 0;
      };
      time.latency += pass_clocks * further(recording.shared[number]) + further(recording.constant[number]);
      continue;
    }
    const AccessCounts& counts = recording.global[number];
    const auto accesses = static_cast<double>(counts.accesses);
    shares[number] = level_shares(input.machine, levels);
    // The last part of an access leaves the port that many clocks after the first.
    time.latency = shares[number].sum() + ratio(static_cast<double>(counts.port_clocks), accesses) - 1;
    time.miss_lines = ratio(static_cast<double>(levels.miss_lines), static_cast<double>(levels.loads));
    time.divergent = counts.lines > counts.accesses;
  }
  return times;
}

// The time of a warp of one cluster, by phase between barriers.
struct ClusterTime {
  std::vector<double> phases; // clocks
  double base = 0;            // of them: issue clocks of the warp and, between its intervals, of others
  CauseClocks exposed{};
  double all() const {
    double sum = base;
    for (double clocks : exposed)
      sum += clocks;
    return sum;
  }
};

// The latency part of a wave, by cause.
struct Latency {
  double base = 0;       // of a mean warp: issue clocks, its own and others'
  CauseClocks exposed{}; // includes imbalance and barriers
  double sum() const {
    double all = 0;
    for (double clocks : exposed)
      all += clocks;
    return all;
  }
};

class Model {
public:
  explicit Model(const ModelInput& input)
      : input_(input), machine_(input.machine), recording_(input.recording), rate_(machine_.issue_rate.value),
        demand_(demand_of(input)) {
    const std::vector<LoadTime> loads = load_times_by_level(input, shares_);
    for (const Cluster& cluster : recording_.clusters)
      walks_.push_back(walk(cluster, input.code, loads, rate_, technique()));
    // The sampled warps, each as long as its cluster's first warp, may be longer or shorter than the mean of all.
    double steps = 0, looked_at = 0;
    for (const Cluster& cluster : recording_.clusters) {
      steps += static_cast<double>(cluster.length * cluster.warps);
      looked_at += static_cast<double>(cluster.warps);
    }
    for (Walk& walk : walks_)
      walk.scale *= ratio(demand_.steps * looked_at, warps() * steps);
    weigh_sites();
    for (const AddedWarp& added : technique().added_warps)
      added_.push_back(walk(*added.profile, input.code, loads, rate_, technique()));
    for (const AddedPart& part : technique().parts)
      parts_.push_back(walk(*part.profile, input.code, loads, rate_));
    sum_up();
  }

  KernelTime run();

private:
  struct Wave {
    double clocks = 0;
    CauseClocks stack{};
  };
  void sum_up();
  void weigh_sites();
  const Technique& technique() const { return technique_of(input_); }
  double warps() const {
    return static_cast<double>(recording_.blocks) * std::max<double>(recording_.warps_per_block, 1);
  }
  ClusterTime time_of_cluster(const Walk& walk, const Company& company, double resident_warps) const;
  double exposed(const IssueInterval& interval, const Company& company) const;
  void expose(const IssueInterval& interval, double stall, double times, CauseClocks& exposed) const;
  Company company_of(double resident_warps) const;
  Latency latency(double resident_warps) const;
  double part_clocks(PartOf of, double warps) const;
  double block_parts(const Company& company, double resident_warps) const;
  double start_of_parts(double first_blocks) const;
  Wave wave(double blocks_of_sm, double blocks) const;

  const ModelInput& input_;
  const ir::Machine& machine_;
  const Recording& recording_;
  double rate_;
  Demand demand_;
  std::vector<double> weights_; // by number
  std::vector<LevelShares> shares_;
  std::vector<Walk> walks_;
  std::vector<Walk> added_;                                     // of Technique::added_warps
  std::vector<Walk> parts_;                                     // of Technique::parts
  double issued_ = 0, beside_ = 0, stalls_ = 0, intervals_ = 0; // of a mean warp
};

// Windows may over-represent some instructions: waits for an instruction are weighted by the ratio of its executions in
// all warps to the number expected from the windows.
void Model::weigh_sites() {
  std::vector<double> expected(recording_.sites.size());
  double looked_at = 0;
  for (size_t i = 0; i < walks_.size(); ++i) {
    const Cluster& cluster = recording_.clusters[i];
    looked_at += static_cast<double>(cluster.warps);
    for (const Step& step : cluster.steps)
      if (!step.guarded_off) expected[step.number] += static_cast<double>(cluster.warps) * walks_[i].scale;
  }
  weights_.assign(expected.size(), 1);
  for_each_site(input_, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    if (expected[number] <= 0) return;
    const auto performed = static_cast<double>(counts.executions - counts.guarded_off);
    weights_[number] = performed * looked_at / (warps() * expected[number]);
  });
}

// Computes means over the warps that were looked at.
void Model::sum_up() {
  double warps = 0;
  for (size_t i = 0; i < walks_.size(); ++i) {
    const auto count = static_cast<double>(recording_.clusters[i].warps);
    const double times = count * walks_[i].scale;
    warps += count;
    issued_ += times * walks_[i].issued;
    beside_ += times * walks_[i].beside;
    stalls_ += times * walks_[i].stalls;
    intervals_ += times * static_cast<double>(walks_[i].intervals.size());
  }
  beside_ = ratio(beside_, warps);
  issued_ = ratio(issued_, warps), stalls_ = ratio(stalls_, warps), intervals_ = ratio(intervals_, warps);
}

// Splits a wait for global memory into the levels that make up its latency.
void Model::expose(const IssueInterval& interval, double stall, double times, CauseClocks& exposed) const {
  if (interval.early != Cause::count) {
    exposed[index(interval.early)] += stall * times;
    return;
  }
  const SiteCode& producer = input_.code[interval.producer];
  const LevelShares& shares = shares_[interval.producer];
  if (producer.waits != Waits::for_global_memory || shares.sum() <= 0) {
    exposed[index(producer.wait)] += stall * times;
    return;
  }
  exposed[index(Cause::wait_l1)] += stall * times * shares.l1 / shares.sum();
  exposed[index(Cause::wait_l2)] += stall * times * shares.l2 / shares.sum();
  exposed[index(Cause::wait_dram)] += stall * times * shares.dram / shares.sum();
}

// The part of a wait that other warps do not hide. If a technique limits the active warps, only these hide it, and it
// recurs in every turn; warps that wait for global memory give their place to others.
double Model::exposed(const IssueInterval& interval, const Company& company) const {
  const bool leaves =
      interval.early == Cause::count && input_.code[interval.producer].waits == Waits::for_global_memory;
  Company active = company;
  if (!leaves) active.warps = std::min(company.warps, std::max(technique().active_warps, 1.0));
  const double turns = active.warps > 0 ? company.warps / active.warps : 1;
  const double hidden = hidden_instructions(input_.policy, interval.stall, active);
  return turns * exposed_stall(interval.stall, hidden, rate_);
}

ClusterTime Model::time_of_cluster(const Walk& walk, const Company& company, double resident_warps) const {
  ClusterTime time;
  size_t at = 0;
  for (uint32_t end : walk.phase_ends) {
    double phase = 0;
    for (; at < end; ++at) {
      const IssueInterval& interval = walk.intervals[at];
      const double weight = interval.early == Cause::count ? weights_[interval.producer] : 1;
      const double stall = exposed(interval, company) * weight;
      if (stall > 0) expose(interval, stall, walk.scale, time.exposed);
      double batches = 0;
      if (interval.miss_lines > 0 && machine_.memory.outstanding_misses.known)
        batches = further_batches(interval.miss_lines * resident_warps, machine_.memory.outstanding_misses.value);
      const double further =
          batches * (machine_.latency.l2.known ? machine_.latency.l2.value : machine_.latency.dram.value);
      time.exposed[index(Cause::misses)] += further * walk.scale;
      const double base =
          weight * (interval.issued / rate_ + others_issue_clocks(input_.policy, interval.issued, rate_, company));
      time.base += base * walk.scale;
      phase += (base + stall + further) * walk.scale;
    }
    time.phases.push_back(phase);
  }
  return time;
}

Company Model::company_of(double resident_warps) const {
  Company company;
  company.warps = std::ceil(resident_warps / machine_.schedulers);
  company.issue_probability = issue_probability(issued_, stalls_);
  // Instructions that others issue beside this warp's take none of its time.
  company.mean_issued = ratio(issued_ - beside_, intervals_);
  return company;
}

Latency Model::latency(double resident_warps) const {
  const Company company = company_of(resident_warps);
  std::vector<ClusterTime> times;
  for (const Walk& walk : walks_)
    times.push_back(time_of_cluster(walk, company, resident_warps));
  Latency result;
  double blocks = 0, mean = 0, last_end = 0, with_barriers = 0;
  for (const auto& [kind, count] : recording_.block_kinds) {
    const double weight = static_cast<double>(count);
    const double share = weight / static_cast<double>(kind.size());
    double longest = 0;
    std::vector<double> phases;
    for (uint16_t cluster : kind) {
      const ClusterTime& time = times[cluster];
      result.base += share * time.base;
      for (size_t i = 0; i < cause_count; ++i)
        result.exposed[i] += share * time.exposed[i];
      mean += share * time.all();
      longest = std::max(longest, time.all());
      phases.resize(std::max(phases.size(), time.phases.size()));
      for (size_t i = 0; i < time.phases.size(); ++i)
        phases[i] = std::max(phases[i], time.phases[i]);
    }
    last_end += weight * longest;
    for (double phase : phases)
      with_barriers += weight * phase;
    blocks += weight;
  }
  result.base = ratio(result.base, blocks);
  for (double& clocks : result.exposed)
    clocks = ratio(clocks, blocks);
  result.exposed[index(Cause::linear)] = block_parts(company, resident_warps);
  result.exposed[index(Cause::imbalance)] = std::max(ratio(last_end - mean, blocks), 0.0);
  // A branch synchronisation ends when the last of the scheduler's warps of the block has issued the branch.
  const double of_block = std::ceil(recording_.warps_per_block / static_cast<double>(machine_.schedulers));
  result.exposed[index(Cause::barrier)] =
      std::max(ratio(with_barriers - last_end, blocks), 0.0) +
      technique().branch_syncs * ((of_block - 1) / rate_ + machine_.latency.integer.value);
  for (size_t i = 0; i < cause_count; ++i)
    result.exposed[i] += technique().stalls[i];
  return result;
}

// Clocks of the technique's parts: one warp's walk, with the issue slots of the scheduler's other warps for it.
double Model::part_clocks(PartOf of, double warps) const {
  const double of_scheduler = std::max(std::ceil(warps / machine_.schedulers), 1.0);
  double clocks = 0;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (technique().parts[i].of == of) clocks += parts_[i].stalls + parts_[i].issued / rate_ * of_scheduler;
  return clocks;
}

// The first warp of a block computes the block's parts. The other warps of the block wait for them, those of other
// blocks do not: blocks start at different times.
double Model::block_parts(const Company& company, double resident_warps) const {
  Company others = company;
  others.warps = 1 + std::ceil(std::max(resident_warps - recording_.warps_per_block, 0.0) / machine_.schedulers);
  double clocks = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (technique().parts[i].of != PartOf::block) continue;
    clocks += parts_[i].issued / rate_;
    for (const IssueInterval& interval : parts_[i].intervals)
      clocks += exposed(interval, others);
  }
  return clocks;
}

// The time of parts computed once per SM: by one warp, then by those of the first block. These warps continue with
// their own sequence afterwards, so that only instructions of other blocks' warps can hide the parts. Then the first
// blocks compute their block parts at the same time, which nothing hides.
double Model::start_of_parts(double first_blocks) const {
  const double resident_warps = first_blocks * recording_.warps_per_block;
  const double serial =
      part_clocks(PartOf::sm_by_warp, 1) + part_clocks(PartOf::sm_by_block, recording_.warps_per_block);
  // Meanwhile the warps of other blocks issue their instructions before the first one that takes a part.
  double before = 0, looked_at = 0;
  for (size_t i = 0; i < walks_.size(); ++i) {
    before += static_cast<double>(recording_.clusters[i].warps) * walks_[i].before_parts;
    looked_at += static_cast<double>(recording_.clusters[i].warps);
  }
  const double others = std::max(resident_warps - recording_.warps_per_block, 0.0) / machine_.schedulers;
  return std::max(serial - others * ratio(before, looked_at) / rate_, 0.0) + part_clocks(PartOf::block, first_blocks) -
         block_parts(company_of(resident_warps), resident_warps);
}

// `blocks_of_sm`: on the SM with the most blocks; `blocks`: on all SMs.
Model::Wave Model::wave(double blocks_of_sm, double blocks) const {
  Wave result;
  const double resident_warps = blocks_of_sm * recording_.warps_per_block;
  const double of_scheduler = std::ceil(resident_warps / machine_.schedulers);
  const double share = ratio(blocks_of_sm, static_cast<double>(recording_.blocks));
  std::vector<std::pair<Cause, double>> bounds;
  bounds.emplace_back(Cause::issue, of_scheduler * ratio(demand_.issue_slots, warps()) / rate_);
  std::vector<double> of_walk; // demands of a lone warp on the resources that its walk includes
  for (size_t i = 0; i < cause_count; ++i) {
    const auto unit = static_cast<Cause>(i);
    if (demand_.unit[i] <= 0) continue;
    if (!in_pipeline(unit)) {
      bounds.emplace_back(unit, demand_.unit[i] * share);
      continue;
    }
    const double slots = ratio(demand_.unit_slots[i], warps()) / rate_;
    const double clocks = ratio(demand_.unit[i], warps()) * machine_.schedulers;
    bounds.emplace_back(unit, beyond(clocks, slots) * of_scheduler);
    of_walk.push_back(beyond(clocks, slots));
  }
  const double of_all = ratio(blocks, static_cast<double>(recording_.blocks));
  if (machine_.memory.l2_bytes_per_clock.known) {
    // Reads of one line by all SMs are served by one slice.
    const double of_slice =
        demand_.l2_read_bytes * traffic_of(input_).hottest_slice * of_all / l2_slice_bytes_per_clock(machine_);
    const double of_sm = demand_.l2_bytes * share / machine_.memory.l2_bytes_per_clock.value;
    bounds.emplace_back(Cause::l2_bandwidth, std::max(of_sm, of_slice));
  }
  bounds.emplace_back(Cause::dram_bandwidth, demand_.dram_bytes() * of_all / dram_bytes_per_clock(machine_));
  bounds.emplace_back(Cause::launch, input_.launch.per_block.value * blocks);
  const Latency latencies = latency(resident_warps);
  of_walk.push_back(latencies.base);
  const double waits = beyond(latencies.base + latencies.sum(), smooth_sum(of_walk));
  // An added warp runs ahead of the others, whose waits cover most of its time already: only the rest counts.
  for (size_t i = 0; i < added_.size(); ++i) {
    const double alone = added_[i].scale * (added_[i].stalls + added_[i].issued / rate_);
    bounds.emplace_back(technique().added_warps[i].cause, beyond(alone, waits));
  }
  std::vector<double> terms;
  for (const auto& [cause, clocks] : bounds)
    terms.push_back(clocks);
  terms.push_back(waits);
  result.clocks = smooth_sum(terms);
  // A bound's share of the time is its share in the sum of powers.
  auto part = [&](double term) {
    return result.clocks > 0 ? result.clocks * std::pow(term / result.clocks, smoothness) : 0;
  };
  for (const auto& [cause, clocks] : bounds)
    result.stack[index(cause)] += part(clocks);
  for (size_t i = 0; i < cause_count; ++i)
    result.stack[i] += part(terms.back()) * ratio(latencies.exposed[i], latencies.sum());
  return result;
}

KernelTime Model::run() {
  KernelTime time;
  const auto blocks = static_cast<double>(recording_.blocks);
  const double sms = machine_.sms, resident = std::max(input_.resident_blocks, 1u);
  const double full_waves = std::floor(blocks / (resident * sms));
  const double rest = blocks - full_waves * resident * sms;
  const LaunchCost& launch = input_.launch;
  auto add = [&](const CauseClocks& stack, double times) {
    for (size_t i = 0; i < cause_count; ++i)
      time.stack[i] += stack[i] * times;
  };
  Wave full, last;
  if (full_waves > 0) {
    full = wave(resident, resident * sms);
    add(full.stack, full_waves);
  }
  if (rest > 0) {
    last = wave(std::ceil(rest / sms), rest);
    const double share = rest / (resident * sms);
    if (const double tail = last.clocks - full.clocks * share; full_waves > 0 && tail > 0) {
      add(full.stack, share);
      time.stack[index(Cause::tail)] += tail;
    } else {
      add(last.stack, 1);
    }
  }
  time.stack[index(Cause::launch)] += launch.constant.value;
  const double start = start_of_parts(full_waves > 0 ? resident : std::ceil(rest / sms));
  time.stack[index(Cause::linear)] += start;
  time.clocks = full_waves * full.clocks + last.clocks + launch.constant.value + start;
  time.seconds = time.clocks / (machine_.clock_mhz * 1e6);
  time.demand = demand_;
  time.waves = blocks / (resident * sms);
  time.resident_blocks = static_cast<uint32_t>(resident);
  time.resident_warps = time.resident_blocks * recording_.warps_per_block;
  time.terms = {
      {"clocks of a full wave", full.clocks, "clocks"},
      {"full waves", full_waves, ""},
      {"clocks of the last wave", last.clocks, "clocks"},
      {"blocks of the last wave", rest, ""},
      {"launch, constant", launch.constant.value, "clocks"},
      {"linear parts, before the first blocks", start, "clocks"},
      {"linear parts, by block", part_clocks(PartOf::block, 1), "clocks"},
      {"clusters of warps", static_cast<double>(recording_.clusters.size()), ""},
      {"instructions of a warp", ratio(demand_.instructions, warps()), ""},
      {"stalls of a lone warp", stalls_, "clocks"},
      {"intervals of a warp", intervals_, ""},
      {"L1 hits", ratio(demand_.l1_hit_sectors, demand_.sectors), "of sectors"},
      {"bytes between L1 and L2", demand_.l2_bytes, "bytes"},
      {"reads of the busiest L2 slice", traffic_of(input_).hottest_slice, "of all"},
      {"bytes read from DRAM", demand_.dram_read_bytes, "bytes"},
      {"bytes written to DRAM", demand_.dram_write_bytes, "bytes"},
      {"accesses that no block looked at made", demand_.unseen_accesses, ""},
      {"blocks looked at", static_cast<double>(recording_.blocks_looked_at), ""},
      {"L2 simulated", static_cast<double>(traffic_of(input_).simulated_l2_bytes), "bytes"},
  };
  const std::vector<TimeFigure>& of_technique = technique().terms;
  time.terms.insert(time.terms.end(), of_technique.begin(), of_technique.end());
  return time;
}

} // namespace

std::vector<LoadTime> load_times(const ModelInput& input) {
  std::vector<LevelShares> shares;
  return load_times_by_level(input, shares);
}

double KernelTime::cpi(const ir::Machine& machine) const {
  return ratio(clocks * machine.sms * machine.schedulers, demand.instructions);
}

KernelTime time_of(const ModelInput& input) {
  return Model(input).run();
}

} // namespace ptxrewrite::timing
