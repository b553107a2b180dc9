#include "emulator/machines/dac/affine_queues.h"

#include <algorithm>

namespace ptxrewrite::emulator {

void TupleQueue::push(QueuedTuple tuple) {
  Entry entry{std::move(tuple), 0};
  for (uint32_t warp = 0; warp < entry.tuple.threads.warps(); ++warp)
    entry.waiting += entry.tuple.threads[warp] != 0;
  if (entry.waiting) entries_.push_back(std::move(entry));
}

const QueuedTuple* TupleQueue::next(uint32_t warp, bool predicates) {
  uint64_t& at = next_[predicates][warp];
  at = std::max(at, first_);
  for (; at - first_ < entries_.size(); ++at)
    if (concerns(entries_[at - first_].tuple, warp, predicates)) return &entries_[at - first_].tuple;
  return nullptr;
}

void TupleQueue::pass(uint32_t warp, bool predicates) {
  --entries_[next_[predicates][warp] - first_].waiting;
  ++next_[predicates][warp];
  while (!entries_.empty() && entries_.front().waiting == 0) {
    entries_.pop_front();
    ++first_;
  }
}

} // namespace ptxrewrite::emulator
