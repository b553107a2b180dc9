// The affine warp's SIMT stack and its register file of divergent conditions (dac-isca17 §4.5, §4.7): control flow of
// all threads of a batch at once. The sides of a branch are executed in the order in which the other warps execute them
// (emulator/core/control.cpp): the fall-through side first, until both meet at the branch's immediate post-dominator.
#pragma once

#include "emulator/machines/dac/affine_threads.h"

#include <vector>

namespace ptxrewrite::emulator {

inline constexpr size_t affine_stack_depth = 8;
inline constexpr size_t condition_registers = 8;
inline constexpr uint32_t never_meets = UINT32_MAX; // the place where sides meet, if there is none

class AffineStack {
public:
  // All threads stand at `start`.
  explicit AffineStack(const AffineBatch& batch, uint32_t start = 0);

  bool empty() const { return entries_.empty(); }
  size_t depth() const { return entries_.size(); }
  uint32_t next() const { return entries_.back().next; }
  const ThreadSet& active() const { return entries_.back().threads; }

  // Control goes on at `place`.
  void go_to(uint32_t place);
  // Active threads of `taken` go to `target`, the others to `fall_through`, and meet at `meet` or never. False: the
  // stack is full; nothing has changed.
  bool branch(const ThreadSet& taken, uint32_t target, uint32_t fall_through, uint32_t meet);
  // The threads end; the others that are active go on at `place`.
  void exit(const ThreadSet& threads, uint32_t place);
  // The last entry that ended at the place where control is now (Fig. 15): the threads that came by that way.
  const ThreadSet& last_popped() const { return last_popped_; }

  // Of branches: entries' two bits for a warp that were set, and masks of lanes that were needed beside them (§4.5).
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
