// The majority path of DARSIE's machine: its warps, and their waits for each other (darsie §4.3.3, §4.5).
#include "emulator/machines/darsie/skip_machine.h"

#include <algorithm>
#include <bit>
#include <map>

namespace ptxrewrite::emulator {
namespace {

constexpr unsigned patience = 64;
constexpr uint32_t unknown_trip = 0x80000000; // plus the warp's number: differs from all other warps' trips

uint64_t mix(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9e3779b97f4a7c15;
  return state ^ (state >> 29);
}

template <class Visit> void for_each_warp(uint32_t warps, Visit&& visit) {
  for (; warps; warps &= warps - 1)
    visit(static_cast<uint32_t>(std::countr_zero(warps)));
}

// Returns the warp's split if all its lanes are in one, else nullptr.
const Split* only_split(const Warp& warp) {
  if (warp.splits.size() != 1 || warp.splits[0].mask != full_mask) return nullptr;
  return &warp.splits[0];
}

// The largest group of warps, on a tie the one with the lowest warp; `groups` by a common property.
template <class Key> uint32_t majority(const std::map<Key, uint32_t>& groups) {
  uint32_t largest = 0;
  for (const auto& [key, group] : groups) {
    const int difference = std::popcount(group) - std::popcount(largest);
    if (difference > 0 || (difference == 0 && std::countr_zero(group) < std::countr_zero(largest))) largest = group;
  }
  return largest;
}

} // namespace

void SkipMachine::enter_block(Warp& warp, uint32_t block) {
  State& state = state_of(warp);
  ++state.progress.blocks;
  state.progress.place = 0;
  state.history = mix(state.history, block);
  state.whole_history = mix(state.whole_history, block);
  if (const ir::LoopId loop = plan_->headed_by(block)) {
    uint32_t& trip = state.trips[loop.index()];
    const bool is_back = state.last_block.valid() && plan_->loops().contains(loop, state.last_block);
    if (warp.active != full_mask)
      trip = unknown_trip | warp.index; // until the loop is entered again
    else if (!is_back)
      trip = 0;
    else if (!(trip & unknown_trip))
      ++trip;
  }
  state.last_block = ir::BlockId(block);
  if (state.on_path) registers_.keep_only(warp.index, [&](uint32_t value) { return plan_->is_live_in(block, value); });
}

void SkipMachine::remove_from_table(uint32_t warp) {
  table_.for_each([&](SkipEntry& entry) {
    if (entry.followers >> warp & 1) table_.pass(entry, warp);
  });
}

void SkipMachine::leave_path(uint32_t warp) {
  State& state = states_[warp];
  state.on_path = false;
  state.wait = Wait::none;
  path_ &= ~(1u << warp);
  waiting_ &= ~(1u << warp);
  remove_from_table(warp);
  counters_->copied += registers_.drop_all(warp);
  ++counters_->left_path;
}

void SkipMachine::warp_finished(const Warp& warp) {
  states_[warp.index].on_path = false;
  path_ &= ~(1u << warp.index);
  remove_from_table(warp.index);
  registers_.drop_all(warp.index);
  if (waiting_) release_waiting();
}

// Removes warps that executed an instruction for themselves before another warp led there from its followers.
void SkipMachine::forget_who_passed() {
  table_.for_each([&](SkipEntry& entry) {
    for_each_warp(entry.followers, [&](uint32_t warp) {
      if (states_[warp].progress > entry.progress) table_.pass(entry, warp);
    });
  });
}

// Whether enough registers would be free if all warps of the path were here: counts those of versions that this warp no
// longer uses, and those that the instruction overwrites.
bool SkipMachine::sync_would_help(uint32_t warp, const SkipPlace& place) const {
  unsigned registers = registers_.free_registers() + registers_.left_behind_by(warp);
  for (uint32_t value : plan_->written(place.number))
    registers += registers_.held(value, warp);
  return registers >= plan_->redundant(place.number).registers;
}

void SkipMachine::release_waiting() {
  while (waiting_ && !block_->failure) {
    if (release_registers()) continue;
    bool all_at_branch = true;
    for_each_warp(path_, [&](uint32_t warp) { all_at_branch = all_at_branch && states_[warp].wait == Wait::branch; });
    if (!all_at_branch) return;
    release_branch();
  }
}

// Releases the warps that wait for registers at the earliest place if all other warps of the path have passed it.
bool SkipMachine::release_registers() {
  const State* earliest = nullptr;
  for_each_warp(waiting_, [&](uint32_t warp) {
    const State& state = states_[warp];
    if (state.wait == Wait::registers && (!earliest || state.progress < earliest->progress)) earliest = &state;
  });
  if (!earliest) return false;
  const Progress here = earliest->progress;
  uint32_t arrived = 0;
  bool all = true;
  for_each_warp(path_, [&](uint32_t warp) {
    const State& state = states_[warp];
    if (state.wait == Wait::registers && state.progress == here)
      arrived |= 1u << warp;
    else
      all = all && state.progress > here;
  });
  if (!all) return false;
  ++counters_->register_syncs;
  fruitless_turns_ = 0;
  resolved_ = here;
  forget_who_passed();
  table_.for_each([&](SkipEntry& entry) {
    if (entry.progress < here) table_.remove(entry);
  });
  const uint32_t instruction = plan_->place(here.place).number;
  for_each_warp(arrived, [&](uint32_t warp) {
    states_[warp].wait = Wait::none;
    for (uint32_t value : plan_->written(instruction))
      registers_.drop(value, warp);
  });
  waiting_ &= ~arrived;
  return true;
}

// All warps of the path are at the branch: they execute it, and the majority stays on the path.
void SkipMachine::release_branch() {
  ++counters_->branch_syncs;
  fruitless_turns_ = 0;
  counters_->branch_waits += static_cast<unsigned>(std::popcount(path_));
  waiting_ = 0;
  table_.clear(); // all warps have passed all entries
  std::map<const MicroOp*, uint32_t> groups;
  for_each_warp(path_, [&](uint32_t index) {
    if (block_->failure) return;
    Warp& warp = block_->warps[index];
    states_[index].wait = Wait::none;
    warp.state = WarpState::runnable;
    const MicroOp* first = warp.next_split();
    const MicroOp* next = execute_alone(warp, *first, plan_->place(code_index(*first)));
    if (next) suspend(warp, next);
    if (const Split* all = only_split(warp)) groups[all->next] |= 1u << index;
  });
  for_each_warp(path_ & ~majority(groups), [&](uint32_t warp) { leave_path(warp); });
}

bool SkipMachine::give_up_waiting(bool others_run) {
  if (!waiting_) return false;
  // Loops that could spin mostly do not.
  if (others_run && ++fruitless_turns_ < patience) return true;
  ++counters_->forced_syncs;
  for_each_warp(path_, [&](uint32_t warp) { leave_path(warp); });
  return true;
}

// Identifies the instance of the warp's current place among all executions in this block.
uint64_t SkipMachine::instance_of(const State& state) const {
  if (plan_->loops().irreducible()) return mix(state.whole_history, state.progress.place);
  uint64_t instance = mix(1, state.progress.place);
  for (ir::LoopId loop = plan_->loops().innermost(state.last_block); loop; loop = plan_->loops().loops()[loop].parent)
    instance = mix(instance, state.trips[loop.index()]);
  return instance;
}

void SkipMachine::barrier_completed(uint32_t warps) {
  if (static_cast<uint32_t>(std::popcount(warps)) != block_->live_warps) return;
  uint32_t whole = 0;
  for_each_warp(warps, [&](uint32_t index) {
    if (only_split(block_->warps[index])) whole |= 1u << index;
  });
  make_path(whole);
}

// Forms the path from warps at the same instance of the same place.
void SkipMachine::make_path(uint32_t candidates) {
  table_.clear();
  fruitless_turns_ = 0;
  uint64_t most_blocks = 0;
  std::map<uint64_t, uint32_t> groups;
  for_each_warp(candidates, [&](uint32_t warp) {
    groups[instance_of(states_[warp])] |= 1u << warp;
    most_blocks = std::max(most_blocks, states_[warp].progress.blocks);
  });
  // Without synchronisation there is no majority: warps share results with those of the same history.
  const uint32_t together = has_branch_sync() ? majority(groups) : candidates;
  for_each_warp(path_ & ~together, [&](uint32_t warp) { leave_path(warp); });
  path_ = together;
  for_each_warp(together, [&](uint32_t warp) {
    State& state = states_[warp];
    state.on_path = true;
    state.history = instance_of(state);
    state.progress.blocks = most_blocks + 1;
  });
}

} // namespace ptxrewrite::emulator
