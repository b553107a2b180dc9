#include "emulator/timing/walk.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ptxrewrite::timing {
namespace {

// Loads of one space that the assembler moves before earlier PTX instructions: to the point where their addresses are
// known, but not across a store to that space, a barrier or a jump, and at most `most` loads before the first of them
// is used. ptxas of CUDA 13.0 moves 21 loads of global memory ahead (sm_80 and sm_90; 48 on sm_75) and 10 of shared
// memory in an unrolled loop of 64 (tests/unit/emulator/timing/walk_test.cpp).
class EarlyLoads {
public:
  explicit EarlyLoads(size_t most) : results_(most) {}

  void start_piece(double now) {
    earliest_ = now;
    std::fill(results_.begin(), results_.end(), now);
  }
  void pass_store(double now) { earliest_ = now; }
  // The clock at which the load is issued, at most `now`.
  double issue(double sources_early, double now) const {
    return std::min(now, std::max({earliest_, sources_early, results_[next_]}));
  }
  void add(double result) {
    results_[next_] = result;
    next_ = (next_ + 1) % results_.size();
  }

private:
  std::vector<double> results_; // a ring of the latest `most` loads
  size_t next_ = 0;
  double earliest_ = 0;
};

constexpr size_t global_loads_ahead = 21, shared_loads_ahead = 10;

class Walker {
public:
  Walker(const MachineCode& code, const std::vector<LoadTime>& loads, double rate, const Technique& technique)
      : code_(code), loads_(loads), technique_(technique), slot_(1 / rate), ready_(code.register_count()),
        early_(code.register_count()), producer_(code.register_count()) {
    if (technique.run_ahead) queues_.emplace(*technique.run_ahead);
  }

  // `issued_at`: nullptr, or receives the clock at which each step has issued.
  Walk run(const Cluster& cluster, std::vector<double>* issued_at = nullptr) {
    walk_.intervals.reserve(cluster.steps.size() / 4);
    for (const Step& step : cluster.steps) {
      take(step);
      if (issued_at) issued_at->push_back(now_);
    }
    close(0, 0);
    walk_.phase_ends.push_back(static_cast<uint32_t>(walk_.intervals.size()));
    if (!cluster.steps.empty())
      walk_.scale = static_cast<double>(cluster.length) / static_cast<double>(cluster.steps.size());
    return std::move(walk_);
  }

private:
  void take(const Step& step) {
    const SiteCode& site = code_[step.number];
    enter_piece(site);
    const SiteChange& change = technique_.at(step.number);
    double sources_ready = 0;
    double sources_early = 0;
    uint32_t producer = step.number;
    for (uint32_t use : code_.uses(site)) {
      sources_early = std::max(sources_early, early_[use]);
      if (ready_[use] > sources_ready) {
        sources_ready = ready_[use];
        producer = producer_[use];
      }
    }
    double result = sources_ready;
    double early = sources_early;
    uint32_t maker = producer; // an absorbed instruction passes on the wait for its operands
    executed_ = 1 - change.skipped;
    slots_ = executed_ * change.slots;
    beside_ = executed_ * change.beside;
    if (change.reads_parts) reads_parts_ = true;
    if (site.instructions) {
      if (change.joins && last_result_ > now_) close(last_result_ - now_, last_maker_);
      if (change.early_stall > 0) wait_early(change);
      if (queues_) wait_for_queues(step);
      if (sources_ready > now_) {
        if (queues_ && queues_->use(producer).is_datum) current_.early = Cause::wait_l1; // the datum is in L1
        close(sources_ready - now_, producer);
      }
      for (uint32_t i = 0; i + 1 < site.instructions; ++i) {
        issue();
        if (site.step_latency > slot_) close(site.step_latency - slot_, step.number);
      }
      issue();
      const bool loads = site.waits == Waits::for_global_memory && !step.guarded_off;
      if (loads) count_misses(loads_[step.number]);
      const bool banked = site.early_load == AccessSpace::shared || site.wait == Cause::wait_constant;
      const double latency = (loads    ? latency_of_load(step.number, change)
                              : banked ? loads_[step.number].latency
                                       : site.latency) +
                             change.more_latency;
      result = result_of(site, sources_early, latency);
      const double chain = (site.instructions - 1) * std::max(site.step_latency, slot_);
      const bool moves = site.unit != Cause::memory_port; // early issue of loads is in result_of
      early = moves ? std::min(result, std::max(piece_start_, sources_early) + chain + latency) : result;
      maker = step.number;
    }
    if (site.written_words && result > last_result_) {
      last_result_ = result;
      last_maker_ = maker;
    }
    for (uint32_t definition : code_.definitions(site)) {
      ready_[definition] = result;
      early_[definition] = early;
      producer_[definition] = maker;
    }
    if (site.waits == Waits::for_barrier && site.instructions) {
      if (queues_) queues_->pass_barrier(clock());
      close(0, 0);
      walk_.phase_ends.push_back(static_cast<uint32_t>(walk_.intervals.size()));
    }
  }

  EarlyLoads* early_loads(AccessSpace space) {
    return space == AccessSpace::none     ? nullptr
           : space == AccessSpace::shared ? &shared_loads_
           : space == AccessSpace::global ? &global_loads_
                                          : &constant_loads_;
  }

  // A piece of straight-line code starts where another one ends, or when it is executed again.
  void enter_piece(const SiteCode& site) {
    if (site.piece != piece_ || site.place <= place_) {
      piece_start_ = now_;
      for (EarlyLoads* loads : {&global_loads_, &shared_loads_, &constant_loads_})
        loads->start_piece(now_);
    }
    piece_ = site.piece;
    place_ = site.place;
  }

  double result_of(const SiteCode& site, double sources_early, double latency) {
    const double issued = now_ - slot_;
    if (EarlyLoads* stores = early_loads(site.stores)) stores->pass_store(now_);
    EarlyLoads* const loads = early_loads(site.early_load);
    if (!loads) return issued + latency;
    const double result = loads->issue(sources_early, issued) + latency;
    loads->add(result);
    return std::max(result, issued);
  }

  void issue() {
    now_ += slot_ * slots_;
    current_.issued += static_cast<float>(slots_);
    walk_.issued += slots_;
    walk_.beside += beside_;
    if (!reads_parts_) walk_.before_parts += slots_;
  }

  double latency_of_load(uint32_t number, const SiteChange& change) {
    if (queues_ && queues_->use(number).is_datum) return queues_->hit_latency();
    const LoadTime& load = loads_[number];
    const Prefetched& prefetched = change.prefetched;
    if (prefetched.of_misses <= 0) return load.latency;
    // The time between two of the warp's trips; other warps follow each other by one interval.
    last_trips_.resize(code_.size(), now_);
    const double trip = now_ - std::exchange(last_trips_[number], now_);
    const double interval = walk_.issued * slot_ / static_cast<double>(walk_.intervals.size() + 1);
    const double lead = prefetched.trips * trip + prefetched.warps * interval;
    const double beyond = std::max(load.latency - code_[number].latency, 0.0); // the extra latency of misses
    return load.latency - std::min(prefetched.of_misses * beyond, prefetched.of_accesses * lead);
  }

  void wait_early(const SiteChange& change) {
    current_.early = change.early_cause;
    close(change.early_stall * executed_, 0);
  }

  // Waits, before the instruction issues, for entries that the affine warp has not enqueued yet.
  void wait_for_queues(const Step& step) {
    const QueueUse& use = queues_->use(step.number);
    if (use.predicate != no_site) wait_until(queues_->predicate(use.predicate));
    if (use.given != no_site) queues_->give(use.given, clock() + slot_);
    if (use.address == no_site || step.guarded_off) return;
    if (use.is_datum) {
      if (const double there = queues_->datum(use, loads_[step.number].latency); there > clock())
        close(there - now_ - behind_, step.number);
    } else {
      wait_until(queues_->address(use));
    }
    queues_->take(clock());
  }

  void wait_until(double there) {
    if (there <= clock()) return;
    current_.early = Cause::wait_queue;
    close(there - now_ - behind_, 0);
  }

  // The affine warp's clock advances while other warps issue, so it is compared with this warp's clock among the other
  // warps: in each interval they issue as much as this one, and their instructions hide its waits.
  double clock() const { return now_ + behind_ + (queues_ ? queues_->others() * current_.issued * slot_ : 0); }

  void count_misses(const LoadTime& load) {
    if (!load.divergent) return;
    current_.miss_lines += static_cast<float>(load.miss_lines * executed_);
  }

  void close(double stall, uint32_t producer) {
    current_.stall = static_cast<float>(stall);
    current_.producer = producer;
    walk_.stalls += stall;
    if (queues_) behind_ += std::max(queues_->others() * current_.issued * slot_ - stall, 0.0);
    now_ += stall;
    if (current_.issued > 0 || stall > 0) walk_.intervals.push_back(current_);
    current_ = {};
  }

  const MachineCode& code_;
  const std::vector<LoadTime>& loads_;
  const Technique& technique_;
  std::optional<WarpQueues> queues_;
  const double slot_;        // clocks per instruction
  double executed_ = 1;      // of the current instruction
  double slots_ = 1;         // of the current instruction
  double beside_ = 0;        // of the current instruction
  double now_ = 0;           // earliest clock of the next instruction
  double behind_ = 0;        // with queues: clocks of other warps' instructions that no wait has covered
  bool reads_parts_ = false; // true from the first such instruction on
  EarlyLoads global_loads_{global_loads_ahead}, shared_loads_{shared_loads_ahead}, constant_loads_{global_loads_ahead};
  uint32_t piece_ = 0, place_ = 0; // of the previous instruction
  double last_result_ = 0;         // the clock at which the latest result in registers is available
  uint32_t last_maker_ = 0;
  std::vector<double> last_trips_; // by number: the last issue of a load with a prefetcher
  double piece_start_ = 0;
  std::vector<double> ready_;
  std::vector<double> early_; // by register: the clock of its value if the producer moves up, too
  std::vector<uint32_t> producer_;
  IssueInterval current_;
  Walk walk_;
};

} // namespace

Walk walk(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads, double rate,
          const Technique& technique) {
  return Walker(code, loads, rate, technique).run(cluster);
}

std::vector<double> issue_clocks(const Cluster& cluster, const MachineCode& code, const std::vector<LoadTime>& loads,
                                 double rate) {
  std::vector<double> clocks;
  const Technique none;
  (void)Walker(code, loads, rate, none).run(cluster, &clocks);
  return clocks;
}

} // namespace ptxrewrite::timing
