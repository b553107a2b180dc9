#include "emulator/timing/run_ahead.h"

#include <algorithm>

namespace ptxrewrite::timing {

// The last tuple is reused for further ones: the recorded affine warp may have fewer trips than the warp.
double WarpQueues::enqueued(uint32_t site) {
  const std::vector<double>& clocks = ahead_->enqueued[site];
  if (clocks.empty()) return barrier_;
  const double clock = clocks[std::min(next_tuple_[site]++, clocks.size() - 1)];
  double delay = 0;
  for (auto known = delays_.rbegin(); known != delays_.rend(); ++known)
    if (known->first <= clock) {
      delay = known->second;
      break;
    }
  return clock + delay;
}

double WarpQueues::address(const QueueUse& use) {
  double entries = std::max(ahead_->entries, 1.0);
  if (use.is_datum) entries = std::min(entries, std::max(ahead_->lines / std::max(use.lines, 1.0), 1.0));
  const auto room = static_cast<size_t>(entries);
  const double has_room = taken_at_.size() >= room ? taken_at_[taken_at_.size() - room] : 0;
  return std::max({enqueued(use.address), has_room, barrier_});
}

void WarpQueues::give(uint32_t site, double now) {
  const std::vector<double>& clocks = ahead_->taken[site];
  if (clocks.empty()) return;
  const double clock = clocks[std::min(next_given_[site]++, clocks.size() - 1)];
  const double before = delays_.empty() ? 0 : delays_.back().second;
  if (now > clock + before) delays_.emplace_back(clock, now - clock);
}

} // namespace ptxrewrite::timing
