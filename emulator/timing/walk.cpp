#include "emulator/timing/walk.h"

#include <algorithm>

namespace ptxrewrite::timing {
namespace {

class Walker {
public:
  Walker(const MachineCode& code, const std::vector<LoadTime>& loads, double rate, const Technique& technique)
      : code_(code), loads_(loads), technique_(technique), slot_(1 / rate), ready_(code.register_count()),
        producer_(code.register_count()) {}

  Walk run(const Cluster& cluster) {
    walk_.intervals.reserve(cluster.steps.size() / 4);
    for (const Step& step : cluster.steps)
      take(step);
    close(0, 0);
    walk_.phase_ends.push_back(static_cast<uint32_t>(walk_.intervals.size()));
    if (!cluster.steps.empty())
      walk_.scale = static_cast<double>(cluster.length) / static_cast<double>(cluster.steps.size());
    return std::move(walk_);
  }

private:
  void take(const Step& step) {
    const SiteCode& site = code_[step.number];
    const SiteChange& change = technique_.at(step.number);
    double sources_ready = 0;
    uint32_t producer = step.number;
    for (uint32_t use : code_.uses(site))
      if (ready_[use] > sources_ready) {
        sources_ready = ready_[use];
        producer = producer_[use];
      }
    double result = sources_ready;
    uint32_t maker = producer; // an instruction that is part of its readers hands their wait on
    executed_ = 1 - change.skipped;
    slots_ = executed_ * change.slots;
    if (site.instructions) {
      if (change.joins && last_result_ > now_) close(last_result_ - now_, last_maker_);
      if (change.early_stall > 0) wait_early(change);
      if (sources_ready > now_) close(sources_ready - now_, producer);
      for (uint32_t i = 0; i + 1 < site.instructions; ++i) {
        issue();
        if (site.step_latency > slot_) close(site.step_latency - slot_, step.number);
      }
      issue();
      const bool loads = site.waits == Waits::for_global_memory && !step.guarded_off;
      if (loads) count_misses(loads_[step.number]);
      result = now_ - slot_ + (loads ? loads_[step.number].latency : site.latency) + site.address_clocks;
      result += change.more_latency;
      maker = step.number;
    }
    if (site.written_words && result > last_result_) {
      last_result_ = result;
      last_maker_ = maker;
    }
    for (uint32_t definition : code_.definitions(site)) {
      ready_[definition] = result;
      producer_[definition] = maker;
    }
    if (site.waits == Waits::for_barrier && site.instructions) {
      close(0, 0);
      walk_.phase_ends.push_back(static_cast<uint32_t>(walk_.intervals.size()));
    }
  }

  void issue() {
    now_ += slot_ * slots_;
    current_.issued += static_cast<float>(slots_);
    walk_.issued += slots_;
  }

  void wait_early(const SiteChange& change) {
    current_.early = change.early_cause;
    close(change.early_stall * executed_, 0);
  }

  void count_misses(const LoadTime& load) {
    if (!load.divergent) return;
    current_.miss_lines += static_cast<float>(load.miss_lines * executed_);
  }

  void close(double stall, uint32_t producer) {
    current_.stall = static_cast<float>(stall);
    current_.producer = producer;
    walk_.stalls += stall;
    now_ += stall;
    if (current_.issued > 0 || stall > 0) walk_.intervals.push_back(current_);
    current_ = {};
  }

  const MachineCode& code_;
  const std::vector<LoadTime>& loads_;
  const Technique& technique_;
  const double slot_;      // clocks by instruction
  double executed_ = 1;    // of the current instruction
  double slots_ = 1;       // likewise
  double now_ = 0;         // when the next instruction may issue
  double last_result_ = 0; // in registers, of all so far: when it is there
  uint32_t last_maker_ = 0;
  std::vector<double> ready_;
  std::vector<uint32_t> producer_;
  Interval current_;
  Walk walk_;
};

} // namespace

Walk walk(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads, double rate,
          const Technique& technique) {
  return Walker(code, loads, rate, technique).run(cluster);
}

} // namespace ptxrewrite::timing
