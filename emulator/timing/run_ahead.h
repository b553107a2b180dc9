// Warps that take addresses, data and predicates from queues which DAC's affine warp fills ahead of them (dac-isca17
// §4.1, §4.2). The affine warp requests a datum from memory as soon as it has the address and the warp's queue has
// room; the warp finds it in L1 or waits for the rest of the latency. With n entries in a warp's queue a request is
// made, at the earliest, when the warp takes the entry n places before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptxrewrite::timing {

inline constexpr uint32_t no_site = UINT32_MAX;

// The queue operations of an instruction of the body, by the numbers that pair it with the affine stream's.
struct QueueUse {
  uint32_t predicate = no_site; // the predicate it takes
  uint32_t address = no_site;   // the address it takes
  uint32_t given = no_site;     // the predicate it gives to the affine warp
  bool is_datum = false;        // the address is that of a load whose datum is requested ahead
  double lines = 1;             // of the datum, per access: locked in L1 until the warp takes it
};

// The queues of a launch.
struct RunAhead {
  std::vector<QueueUse> uses;                // by number of the body's instruction
  std::vector<std::vector<double>> enqueued; // by site: clocks at which the affine warp, running alone, enqueues
  std::vector<std::vector<double>> taken;    // by site: clocks at which it takes a warp's predicate
  double entries = 1;                        // of each warp's queue
  double lines = 1;                          // that each warp can have locked in L1
  double hit_latency = 0;                    // of L1, which holds the data when they are taken
  double warps_of_scheduler = 1;             // that take from queues: each issues while others do not
};

// The queues of one warp during its walk.
class WarpQueues {
public:
  explicit WarpQueues(const RunAhead& ahead)
      : ahead_(&ahead), next_tuple_(ahead.enqueued.size()), next_given_(ahead.taken.size()) {}

  const QueueUse& use(uint32_t number) const { return ahead_->uses[number]; }
  double hit_latency() const { return ahead_->hit_latency; }
  double others() const { return ahead_->warps_of_scheduler > 1 ? ahead_->warps_of_scheduler - 1 : 0; }
  // The clock at which the next predicate of the site is available; likewise for the next address.
  double predicate(uint32_t site) { return enqueued(site); }
  double address(const QueueUse& use);
  // The clock at which the datum is available, `latency` clocks after its request.
  double datum(const QueueUse& use, double latency) { return address(use) + latency; }
  // The warp takes the address or datum that was queried last.
  void take(double now) { taken_at_.push_back(now); }
  // Nothing is expanded for a warp beyond a barrier before the warp has passed the barrier.
  void pass_barrier(double now) { barrier_ = now; }
  // The warp gives a predicate to the affine warp, which waits for it.
  void give(uint32_t site, double now);

private:
  double enqueued(uint32_t site);

  const RunAhead* ahead_;
  std::vector<size_t> next_tuple_, next_given_; // by site
  std::vector<double> taken_at_;                // addresses and data so far
  double barrier_ = 0;
  // Delays of the affine warp: from a clock of its own on, the number of clocks it is late; ascending.
  std::vector<std::pair<double, double>> delays_;
};

} // namespace ptxrewrite::timing
