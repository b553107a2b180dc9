// Warps that take addresses, data and predicates from queues which DAC's affine warp fills ahead of them (dac-isca17
// §4.1, §4.2). The affine warp asks memory for a datum as soon as it has the address and the warp's queue has room; the
// warp finds it in L1 when it comes to it, or waits for the rest of the latency there. With n entries of a warp's queue
// a request is made when the warp has taken the entry n before it, at the earliest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptxrewrite::timing {

inline constexpr uint32_t no_site = UINT32_MAX;

// What an instruction of the body has to do with the queues, by the numbers that pair it with the affine stream's.
struct QueueUse {
  uint32_t predicate = no_site; // takes
  uint32_t address = no_site;   // takes
  uint32_t given = no_site;     // gives to the affine warp
  bool is_datum = false;        // the address is that of a load whose datum was asked for ahead
  double lines = 1;             // of it, by access: they are locked in L1 until they are taken
};

// Of a launch.
struct RunAhead {
  std::vector<QueueUse> uses;                // by number of the body's instruction
  std::vector<std::vector<double>> enqueued; // by site: clocks at which the affine warp, alone, enqueues for it
  std::vector<std::vector<double>> taken;    // by site: clocks at which it takes what a warp gave
  double entries = 1;                        // of each warp's queue
  double lines = 1;                          // of L1 that each warp can have locked
  double hit_latency = 0;                    // of L1, where data are when they are taken
  double warps_of_scheduler = 1;             // that take: each issues while others do not
};

// The queues of one warp, as its walk comes to them.
class WarpQueues {
public:
  explicit WarpQueues(const RunAhead& ahead)
      : ahead_(&ahead), next_tuple_(ahead.enqueued.size()), next_given_(ahead.taken.size()) {}

  const QueueUse& use(uint32_t number) const { return ahead_->uses[number]; }
  double hit_latency() const { return ahead_->hit_latency; }
  double others() const { return ahead_->warps_of_scheduler > 1 ? ahead_->warps_of_scheduler - 1 : 0; }
  // When the next predicate of the site is there; when the next address is.
  double predicate(uint32_t site) { return enqueued(site); }
  double address(const QueueUse& use);
  // When the datum is there, which memory brings `latency` clocks after it was asked for.
  double datum(const QueueUse& use, double latency) { return address(use) + latency; }
  // The warp takes the address or datum that it asked about last.
  void take(double now) { taken_at_.push_back(now); }
  // Nothing is expanded for a warp beyond a barrier before it has passed that.
  void pass_barrier(double now) { barrier_ = now; }
  // The affine warp goes on when it has the predicate.
  void give(uint32_t site, double now);

private:
  double enqueued(uint32_t site);

  const RunAhead* ahead_;
  std::vector<size_t> next_tuple_, next_given_; // by site
  std::vector<double> taken_at_;                // addresses and data so far
  double barrier_ = 0;
  // From such a clock of its own on, the affine warp is so much later; ascending.
  std::vector<std::pair<double, double>> delays_;
};

} // namespace ptxrewrite::timing
