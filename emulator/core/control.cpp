// Divergence and reconvergence of the lanes of a warp: see warp.h.
#include "emulator/core/warp.h"

#include "emulator/core/block.h"

#include <bit>
#include <cassert>

namespace ptxrewrite::emulator {

uint32_t Warp::new_meeting(const Meeting& meeting_to_add) {
  for (uint32_t i = 0; i < meetings.size(); ++i)
    if (!meetings[i].in_use) {
      meetings[i] = meeting_to_add;
      meetings[i].in_use = true;
      return i;
    }
  meetings.push_back(meeting_to_add);
  meetings.back().in_use = true;
  return static_cast<uint32_t>(meetings.size() - 1);
}

void Warp::resume(const Split& split) {
  active = split.mask;
  meeting = split.meeting;
  activation = split.activation;
  base[static_cast<unsigned>(LaneBase::registers)] = activation->registers;
}

const MicroOp* Warp::diverge(const MicroOp* target, const MicroOp* fall_through, const MicroOp* meet_at) {
  const uint32_t taken = mask;
  const uint32_t rest = active & ~taken;
  if (meet_at) {
    const bool same =
        meeting != no_meeting && meetings[meeting].at == meet_at && meetings[meeting].activation == activation;
    if (!same) meeting = new_meeting({meet_at, activation, nullptr, active, 0, meeting, true});
    // Lanes whose next place is the meeting itself have arrived already.
    if (target == meet_at || fall_through == meet_at) {
      meetings[meeting].arrived |= target == meet_at ? taken : rest;
      active = target == meet_at ? rest : taken;
      return target == meet_at ? fall_through : target;
    }
  }
  splits.push_back({target, activation, taken, meeting, SplitState::runnable, 0});
  active = rest;
  return fall_through;
}

const MicroOp* Warp::arrive(const MicroOp* here) {
  Meeting& place = meetings[meeting];
  place.arrived |= active;
  if (place.arrived != place.expected) return next_split();
  Activation* callee = place.callee;
  place.in_use = false;
  resume({here, place.activation, place.expected, place.parent, SplitState::runnable, 0});
  if (callee) block->end_activation(*this, callee);
  return here;
}

// Lanes that have ended are not expected at any meeting. A meeting is released if all its other lanes have arrived.
void Warp::remove_from_meetings(uint32_t lanes, const Activation* within) {
  for (Meeting& place : meetings) {
    if (!place.in_use || (place.expected & lanes) == 0 || (within && place.activation != within)) continue;
    place.expected &= ~lanes;
    place.arrived &= ~lanes;
    if (place.expected == place.arrived) {
      if (place.expected)
        splits.push_back({place.at, place.activation, place.expected, place.parent, SplitState::runnable, 0});
      if (place.callee) block->end_activation(*this, place.callee);
      place.in_use = false;
    }
  }
}

const MicroOp* Warp::exit_lanes(uint32_t lanes, const MicroOp* following) {
  live &= ~lanes;
  active &= ~lanes;
  remove_from_meetings(lanes);
  if (live == 0) {
    state = WarpState::finished;
    return nullptr;
  }
  return active ? following : next_split();
}

const MicroOp* Warp::park(const MicroOp* next, SplitState split_state, uint32_t wait) {
  splits.push_back({next, activation, active, meeting, split_state, wait});
  active = 0;
  return next_split();
}

const MicroOp* Warp::next_split() {
  active = 0;
  do {
    for (size_t i = splits.size(); i-- > 0;) {
      if (splits[i].state != SplitState::runnable) continue;
      Split split = splits[i];
      splits.erase(splits.begin() + static_cast<ptrdiff_t>(i));
      resume(split);
      return split.next;
    }
    // No split can run. Lanes that wait for lanes at a barrier or at a warp-wide instruction continue without them.
  } while (wake_gathered() || release_waiting());
  state = WarpState::waiting;
  return nullptr;
}

uint32_t Warp::guard_mask(const MicroOp& op) const {
  if (!op.guard) return full_mask;
  return op.guard_negated ? ~predicate(op.guard) : predicate(op.guard);
}

namespace {
// Does the split wait at an instruction that the lanes at `op` with these members execute together?
bool stands_at(const Split& split, const MicroOp& op, uint32_t members) {
  return split.state == SplitState::at_warp_sync && split.wait == members && split.next->handler == op.handler &&
         split.next->flags == op.flags;
}
} // namespace

bool Warp::gather(const MicroOp& op, uint32_t members, uint32_t& together, const MicroOp*& next) {
  gathered.clear();
  together = mask;
  if ((members & live & ~active) == 0) [[likely]]
    return true;
  uint32_t present = active;
  for (const Split& split : splits)
    if (stands_at(split, op, members)) present |= split.mask;
  if (members & live & ~present) {
    next = park(&op, SplitState::at_warp_sync, members);
    return false;
  }
  std::byte*& registers = base[static_cast<unsigned>(LaneBase::registers)];
  for (Split& split : splits) {
    if (!stands_at(split, op, members)) continue;
    registers = split.activation->registers;
    const uint32_t executing = split.mask & guard_mask(*split.next);
    gathered.push_back({split.next, split.activation, executing});
    together |= executing;
    split.state = SplitState::runnable;
    ++split.next;
  }
  registers = activation->registers;
  return true;
}

bool Warp::wake_gathered() {
  for (Split& split : splits) {
    if (split.state != SplitState::at_warp_sync) continue;
    uint32_t present = 0;
    for (const Split& other : splits)
      if (stands_at(other, *split.next, split.wait)) present |= other.mask;
    if ((split.wait & live & ~present) != 0) continue;
    split.state = SplitState::runnable; // executes the instruction, and finds the other lanes gathered there
    return true;
  }
  return false;
}

bool Warp::release_waiting() {
  for (size_t i = meetings.size(); i-- > 0;) {
    Meeting& place = meetings[i];
    if (!place.in_use || place.arrived == 0) continue;
    splits.push_back({place.at, place.activation, place.arrived, place.parent, SplitState::runnable, 0});
    place.expected &= ~place.arrived;
    place.arrived = 0;
    return true;
  }
  return false;
}

const MicroOp* Warp::yield(const MicroOp* next) {
  patience = 0;
  // Lanes that wait at a meeting for the spinning lanes may hold the lock that these spin on.
  while (release_waiting()) {
  }
  splits.insert(splits.begin(), {next, activation, active, meeting, SplitState::runnable, 0});
  active = 0;
  state = WarpState::yielded;
  return nullptr;
}

} // namespace ptxrewrite::emulator
