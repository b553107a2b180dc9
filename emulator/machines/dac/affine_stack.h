// The affine warp's SIMT stack and its register file of divergent conditions (dac-isca17 §4.5, §4.7): control flow of
// all threads of a batch at once. The sides of a branch are executed in the order of the other warps
// (emulator/core/control.cpp): the fall-through side first, up to the branch's immediate post-dominator.
#pragma once

#include "emulator/machines/dac/affine_threads.h"

#include <vector>

namespace ptxrewrite::emulator {

inline constexpr size_t affine_stack_depth = 8;
inline constexpr size_t condition_registers = 8;
inline constexpr uint32_t never_meets = UINT32_MAX; // in place of a reconvergence point if there is none

class AffineStack {
public:
  // All threads start at `start`.
  explicit AffineStack(const AffineBatch& batch, uint32_t start = 0);

  bool empty() const { return entries_.empty(); }
  size_t depth() const { return entries_.size(); }
  uint32_t next() const { return entries_.back().next; }
  const ThreadSet& active() const { return entries_.back().threads; }

  // Control continues at `place`.
  void go_to(uint32_t place);
  // Active threads in `taken` go to `target`, the others to `fall_through`; they reconverge at `meet` or never. Returns
  // false, without a change, if the stack is full.
  bool branch(const ThreadSet& taken, uint32_t target, uint32_t fall_through, uint32_t meet);
  // Ends the threads; the other active threads continue at `place`.
  void exit(const ThreadSet& threads, uint32_t place);
  // The entry popped last at the current place (Fig. 15): the threads that arrived from that side.
  const ThreadSet& last_popped() const { return last_popped_; }

  // Updates by branches: two-bit states of warps, and lane masks that were needed in addition (§4.5).
  uint64_t warp_updates() const { return warp_updates_; }
  uint64_t lane_updates() const { return lane_updates_; }

private:
  struct Entry {
    uint32_t next = 0;
    uint32_t meet = never_meets;
    ThreadSet threads;
  };
  void drop_arrived();
  void push(uint32_t next, uint32_t meet, ThreadSet threads);

  const AffineBatch* batch_;
  std::vector<Entry> entries_;
  ThreadSet last_popped_;
  uint64_t warp_updates_ = 0, lane_updates_ = 0;
};

} // namespace ptxrewrite::emulator
