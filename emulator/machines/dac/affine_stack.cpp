#include "emulator/machines/dac/affine_stack.h"

#include <algorithm>
#include <utility>

namespace ptxrewrite::emulator {

AffineStack::AffineStack(const AffineBatch& batch, uint32_t start) : batch_(&batch), last_popped_(batch.warps()) {
  push(start, never_meets, ThreadSet::all(batch));
}

void AffineStack::push(uint32_t next, uint32_t meet, ThreadSet threads) {
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp) {
    const WarpShare share = threads.share(warp, batch_->members(warp));
    warp_updates_ += share != WarpShare::none;
    lane_updates_ += share == WarpShare::mixed;
  }
  entries_.push_back({next, meet, std::move(threads)});
}

// Threads that reach the reconvergence point wait in the entry below, which contains all of them.
void AffineStack::drop_arrived() {
  while (!entries_.empty()) {
    Entry& top = entries_.back();
    if (!top.threads.empty() && (top.meet == never_meets || top.next != top.meet)) return;
    if (!top.threads.empty()) last_popped_ = std::move(top.threads);
    entries_.pop_back();
  }
}

void AffineStack::go_to(uint32_t place) {
  entries_.back().next = place;
  drop_arrived();
}

bool AffineStack::branch(const ThreadSet& taken, uint32_t target, uint32_t fall_through, uint32_t meet) {
  Entry& top = entries_.back();
  ThreadSet to_target = top.threads & taken, others = without(top.threads, taken);
  if (to_target.empty() || others.empty()) {
    go_to(to_target.empty() ? fall_through : target);
    return true;
  }
  // The entry becomes the one that waits at the reconvergence point, unless it leads there already (further trips of a
  // loop) or there is none.
  const bool has_below = meet != never_meets && meet != top.meet;
  const unsigned sides = static_cast<unsigned>(target != meet) + static_cast<unsigned>(fall_through != meet);
  const size_t depth = entries_.size() - (has_below ? 0 : 1) + sides;
  if (depth > affine_stack_depth) return false;
  const uint32_t side_meet = meet == never_meets ? top.meet : meet;
  if (has_below)
    top.next = meet;
  else
    entries_.pop_back();
  if (target != side_meet) push(target, side_meet, std::move(to_target));
  if (fall_through != side_meet) push(fall_through, side_meet, std::move(others));
  drop_arrived();
  return true;
}

void AffineStack::exit(const ThreadSet& threads, uint32_t place) {
  for (Entry& entry : entries_)
    entry.threads.remove(threads);
  if (!entries_.back().threads.empty()) entries_.back().next = place;
  drop_arrived();
}

} // namespace ptxrewrite::emulator
