// Leaders, followers and the order of warps; the majority path and waits are in skip_path.cpp.
#include "emulator/machines/darsie/skip_machine.h"

#include "support/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace ptxrewrite::emulator {
namespace {

constexpr unsigned ports = 2; // of the skip table, for pcs
constexpr unsigned longest_turn = 12;

} // namespace

SkipLaunch::SkipLaunch(const KernelImage& image, std::span<const ir::DarsieMark> marks, const LaunchRequest& request)
    : settings(request.machines.get<SkipSettings>()),
      plan(image, marks, std::array{request.block.x, request.block.y, request.block.z}), fences(emulated_sm_count) {}

SkipMachine::SkipMachine(Block& block, SkipLaunch& launch)
    : BlockMachine(darsie_machine()), block_(&block), launch_(&launch), plan_(&launch.plan), settings_(launch.settings),
      counters_(&launch.counters), table_(registers_), states_(block.launch->warps) {
  counters_->skipped_by_instruction.resize(plan_->entry().source->instructions.size());
  for (uint32_t warp = 0; warp < states_.size(); ++warp)
    turns_.push_back(warp);
}

void SkipMachine::start_block() {
  table_.clear();
  registers_.clear();
  path_ = waiting_ = 0;
  fruitless_turns_ = 0;
  resolved_ = {};
  probed_.clear();
  random_state_ = settings_.order_seed + block_->linear * 0x9e3779b97f4a7c15;
  const uint32_t threads = block_->launch->threads;
  for (uint32_t warp = 0; warp < states_.size(); ++warp) {
    State& state = states_[warp];
    state = {};
    state.trips.resize(plan_->loops().loops().size());
    state.on_path = (warp + 1) * warp_size <= threads;
    path_ |= static_cast<uint32_t>(state.on_path) << warp;
  }
}

uint64_t SkipMachine::random() {
  random_state_ += 0x9e3779b97f4a7c15;
  return mixed_bits(random_state_);
}

void SkipMachine::begin_round() {
  counters_->port_accesses += probed_.size();
  if (probed_.size() > ports) counters_->port_conflicts += (probed_.size() - 1) / ports;
  probed_.clear();
  if (settings_.order_seed)
    for (size_t i = turns_.size(); i > 1; --i)
      std::swap(turns_[i - 1], turns_[random() % i]);
}

Warp& SkipMachine::warp_of_turn(uint32_t turn) {
  return block_->warps[turns_[turn]];
}

void SkipMachine::take_turn(Warp& warp) {
  for (uint64_t steps = settings_.order_seed ? 1 + random() % longest_turn : 1; steps > 0; --steps) {
    step(warp);
    if (waiting_ && !block_->failure) release_waiting();
    if (block_->failure || warp.state != WarpState::runnable || waits(warp)) return;
  }
}

void SkipMachine::step(Warp& warp) {
  warp.state = WarpState::runnable;
  const MicroOp* op = warp.next_split();
  bool stepped = false;
  while (op) {
    if (state_of(warp).on_path && warp.active != full_mask) leave_path(warp.index);
    if (warp.activation != &warp.root) { // device functions are executed unchanged
      if (stepped) return suspend(warp, op);
      stepped = op->is_instruction;
      op = execute(warp, *op);
      continue;
    }
    const SkipPlace& place = plan_->place(code_index(*op));
    if (place.kind == SkipPlace::Kind::instruction) {
      if (stepped) return suspend(warp, op);
      op = begin_instruction(warp, *op, place);
      stepped = true;
      continue;
    }
    if (place.kind == SkipPlace::Kind::block_start) enter_block(warp, place.number);
    op = execute(warp, *op);
  }
}

const MicroOp* SkipMachine::begin_instruction(Warp& warp, const MicroOp& first, const SkipPlace& place) {
  State& state = state_of(warp);
  state.progress.place = code_index(first);
  if (!state.on_path) {
    counters_->off_path += place.is_redundant;
    return execute_instruction(warp, first, place);
  }
  if (place.may_part_warps && has_branch_sync()) return wait_for_others(warp, first, Wait::branch);
  return place.is_redundant ? begin_redundant(warp, first, place) : execute_alone(warp, first, place);
}

const MicroOp* SkipMachine::begin_redundant(Warp& warp, const MicroOp& first, const SkipPlace& place) {
  ++counters_->probes;
  probed_.insert(place.number);
  SkipEntry* entry = table_.find(place.number, state_of(warp).history);
  if (entry && entry->may_be_global && entry->fences != fences()) {
    ++counters_->dropped_by_fence;
    table_.remove(*entry);
    entry = nullptr;
  }
  if (entry && (entry->followers >> warp.index & 1) && entry->leader_written_back)
    return follow(warp, first, place, *entry);
  if (std::has_single_bit(path_)) {
    ++counters_->alone;
    return execute_alone(warp, first, place);
  }
  if (!entry) return lead(warp, first, place);
  ++counters_->no_entry;
  return execute_alone(warp, first, place);
}

// The follower takes the leader's lanes. In check mode it also computes its own; a load that IGNORE-STORE keeps in the
// table is always computed, because memory may have changed.
const MicroOp* SkipMachine::follow(Warp& warp, const MicroOp& first, const SkipPlace& place, SkipEntry& entry) {
  const RedundantInstruction& what = plan_->redundant(place.number);
  if (settings_.check || !settings_.share || entry.is_stale || what.results.empty()) {
    execute_instruction(warp, first, place);
    if (block_->failure) return nullptr;
    unsigned lane = 0;
    const std::string wrong = settings_.check || entry.is_stale ? difference(warp, what, entry, lane) : std::string();
    if (!wrong.empty() && !entry.is_stale)
      return block_->fail(warp, first, lane,
                          fmt::format("warp {} skips a redundant instruction: {}", warp.index, wrong));
    counters_->stale += entry.is_stale;
    if (!wrong.empty()) {
      ++counters_->stale_wrong;
      for (uint32_t value : plan_->written(place.number))
        registers_.drop(value, warp.index);
      table_.pass(entry, warp.index);
      return plan_->entry().code.data() + place.past;
    }
  } else {
    count_skipped_guard(warp, place);
    take_results(warp, what, entry);
  }
  ++counters_->skipped[static_cast<size_t>(what.kind)];
  ++counters_->skipped_by_instruction[place.number];
  counters_->skipped_loads += what.is_load;
  for (VersionId version : entry.versions)
    registers_.hold(version, warp.index);
  table_.pass(entry, warp.index);
  for (uint32_t value : plan_->dying(place.number))
    registers_.drop(value, warp.index);
  return plan_->entry().code.data() + place.past;
}

const MicroOp* SkipMachine::lead(Warp& warp, const MicroOp& first, const SkipPlace& place) {
  const RedundantInstruction& what = plan_->redundant(place.number);
  const State& state = state_of(warp);
  uint32_t followers = path_ & ~(1u << warp.index);
  if (has_branch_sync()) {
    forget_who_passed();
    for (uint32_t others = followers; others; others &= others - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(others));
      if (states_[other].progress > state.progress) followers &= ~(1u << other);
    }
  }
  if (followers == 0) {
    ++counters_->alone;
    return execute_alone(warp, first, place);
  }
  if (registers_.free_registers() < what.registers) {
    if (has_branch_sync() && state.progress != resolved_ && sync_would_help(warp.index, place))
      return wait_for_others(warp, first, Wait::registers);
    ++counters_->no_register;
    return execute_alone(warp, first, place);
  }
  SkipEntry* entry = table_.make(has_branch_sync() ? Eviction::done_only : Eviction::oldest, counters_->evictions);
  if (!entry) {
    ++counters_->no_entry;
    return execute_alone(warp, first, place);
  }
  entry->pc = place.number;
  entry->history = state.history;
  entry->progress = state.progress;
  entry->followers = followers;
  entry->is_load = what.is_load;
  entry->may_be_global = what.may_be_global;
  entry->fences = fences();
  const MicroOp* next = execute_instruction(warp, first, place);
  if (block_->failure) return nullptr;
  for (const SharedResult& result : what.results) {
    entry->versions.push_back(*registers_.allocate(result.value, result.registers));
    counters_->most_versions = std::max<uint64_t>(counters_->most_versions, registers_.versions_of(result.value));
    registers_.hold(entry->versions.back(), warp.index);
  }
  keep_results(warp, what, *entry);
  entry->leader_written_back = true;
  ++counters_->led;
  counters_->renames += what.results.size();
  counters_->most_registers = std::max<uint64_t>(counters_->most_registers, registers_.used_registers());
  for (uint32_t value : plan_->dying(place.number))
    registers_.drop(value, warp.index);
  return next;
}

// A warp of the path executes an instruction for itself and gets its own registers for the results.
const MicroOp* SkipMachine::execute_alone(Warp& warp, const MicroOp& first, const SkipPlace& place) {
  const bool is_partial = warp.guard_mask(plan_->entry().code[place.own]) != full_mask;
  const MicroOp* next = execute_instruction(warp, first, place);
  for (uint32_t value : plan_->written(place.number)) {
    const unsigned registers = registers_.drop(value, warp.index);
    if (is_partial) counters_->copied += registers;
  }
  for (uint32_t value : plan_->dying(place.number))
    registers_.drop(value, warp.index);
  return next;
}

const MicroOp* SkipMachine::execute_instruction(Warp& warp, const MicroOp& first, const SkipPlace& place) {
  const MicroOp* past = plan_->entry().code.data() + place.past;
  const MicroOp* op = &first;
  const std::less<const MicroOp*> before; // `op` may be in another function
  while (op && !before(op, &first) && before(op, past))
    op = execute(warp, *op);
  return op;
}

const MicroOp* SkipMachine::execute(Warp& warp, const MicroOp& op) {
  const uint32_t mask = warp.active & warp.guard_mask(op);
  if (op.counts_guard) {
    GuardCounter& counter = block_->counters->guards[op.instruction];
    counter.lanes += static_cast<unsigned>(std::popcount(mask));
    counter.off += mask == 0;
  }
  if (mask == 0) return &op + 1;
  warp.mask = mask;
  const MicroOp* next = op.handler(warp, op);
  if (op.is_instruction) apply_effects(op.instruction);
  return next;
}

// Stores the warp's next step.
void SkipMachine::suspend(Warp& warp, const MicroOp* next) {
  warp.splits.push_back({next, warp.activation, warp.active, warp.meeting, SplitState::runnable, 0});
  warp.active = 0;
}

const MicroOp* SkipMachine::wait_for_others(Warp& warp, const MicroOp& first, Wait wait) {
  suspend(warp, &first);
  state_of(warp).wait = wait;
  waiting_ |= 1u << warp.index;
  return nullptr;
}

// Applies changes of memory that other warps may observe: loads in the table become invalid or stale.
void SkipMachine::apply_effects(uint32_t instruction) {
  if (plan_->is_fence(instruction)) ++fences();
  const bool stores = plan_->stores(instruction), drops = plan_->drops_loads(instruction);
  if (!stores && !drops) return;
  table_.for_each([&](SkipEntry& entry) {
    if (!entry.is_load || entry.is_done()) return;
    if (stores && settings_.variant == SkipVariant::ignore_store) {
      entry.is_stale = true;
      return;
    }
    ++(stores ? counters_->dropped_by_store : counters_->dropped_by_fence);
    table_.remove(entry);
  });
}

void SkipMachine::keep_results(const Warp& warp, const RedundantInstruction& what, const SkipEntry& entry) {
  for (size_t i = 0; i < what.results.size(); ++i)
    std::memcpy(registers_.lanes(entry.versions[i]), warp.lanes<std::byte>(what.results[i].lanes),
                what.results[i].bytes);
}

void SkipMachine::take_results(const Warp& warp, const RedundantInstruction& what, const SkipEntry& entry) {
  for (size_t i = 0; i < what.results.size(); ++i)
    std::memcpy(warp.lanes<std::byte>(what.results[i].lanes), registers_.lanes(entry.versions[i]),
                what.results[i].bytes);
}

std::string SkipMachine::difference(const Warp& warp, const RedundantInstruction& what, const SkipEntry& entry,
                                    unsigned& lane) const {
  for (size_t i = 0; i < what.results.size(); ++i) {
    const SharedResult& result = what.results[i];
    const std::byte* own = warp.lanes<std::byte>(result.lanes);
    const std::byte* shared = registers_.lanes(entry.versions[i]);
    if (std::memcmp(own, shared, result.bytes) == 0) continue;
    uint64_t values[2] = {};                // own, shared
    if (result.bytes == sizeof(uint32_t)) { // a predicate: one bit per lane
      uint32_t masks[2];
      std::memcpy(&masks[0], own, sizeof masks[0]);
      std::memcpy(&masks[1], shared, sizeof masks[1]);
      lane = static_cast<unsigned>(std::countr_zero(masks[0] ^ masks[1]));
      for (size_t side = 0; side < 2; ++side)
        values[side] = masks[side] >> lane & 1;
    } else {
      const size_t bytes = result.bytes / warp_size;
      while (std::memcmp(own + lane * bytes, shared + lane * bytes, bytes) == 0)
        ++lane;
      std::memcpy(&values[0], own + lane * bytes, std::min(bytes, sizeof values[0]));
      std::memcpy(&values[1], shared + lane * bytes, std::min(bytes, sizeof values[1]));
    }
    const ir::Function& function = *plan_->entry().source;
    return fmt::format("'{}' would be {:#x} in its lane {}, and the shared result is {:#x}",
                       function.value_name(ir::ValueId(result.value)), values[0], lane, values[1]);
  }
  return {};
}

// Counters are those of the program: a skipped instruction counts its lanes, too.
void SkipMachine::count_skipped_guard(const Warp& warp, const SkipPlace& place) {
  const MicroOp& op = plan_->entry().code[place.own];
  if (!op.counts_guard) return;
  const uint32_t mask = warp.active & warp.guard_mask(op);
  GuardCounter& counter = block_->counters->guards[op.instruction];
  counter.lanes += static_cast<unsigned>(std::popcount(mask));
  counter.off += mask == 0;
}

// Runs one turn of each warp. Returns false if the block has failed.
bool SkipMachine::run_round(uint32_t& spun) {
  begin_round();
  for (uint32_t turn = 0; turn < turns_.size(); ++turn) {
    Warp& warp = warp_of_turn(turn);
    if ((warp.state != WarpState::runnable && warp.state != WarpState::yielded) || waits(warp)) continue;
    take_turn(warp);
    if (block_->failure) return false;
    if (warp.state != WarpState::finished && warp.state != WarpState::waiting) continue;
    spun = 0;
    block_->changed = true;
    if (warp.state == WarpState::waiting) {
      block_->note_arrival(warp);
      continue;
    }
    warp_finished(warp);
    block_->warp_finished(warp);
    if (block_->failure) return false;
  }
  return true;
}

// The warps that can run; spinning ones among them are added to `spun`.
uint32_t SkipMachine::able_warps(uint32_t& spun) {
  uint32_t able = 0;
  for (Warp& warp : block_->warps) {
    if ((warp.state != WarpState::runnable && warp.state != WarpState::yielded) || waits(warp)) continue;
    able |= 1u << warp.index;
    if (warp.state != WarpState::yielded || (spun >> warp.index & 1)) continue;
    spun |= 1u << warp.index;
    block_->changed = block_->changed || !block_->watch_progress || block_->is_in_new_state(warp);
  }
  return able;
}

// A spinning warp ends its turn when it would yield; when all warps spin, other blocks get their turn.
BlockState SkipMachine::run(Block& block) {
  block.changed = false;
  block.start_all_warps();
  if (block.failure) return BlockState::failed;
  uint32_t spun = 0; // warps
  for (;;) {
    if (!run_round(spun)) return BlockState::failed;
    if (block.live_warps == 0) return BlockState::finished;
    const uint32_t able = able_warps(spun);
    if (able & ~spun) continue;
    if (give_up_waiting(able != 0)) {
      spun = 0;
    } else if (able) {
      return BlockState::yielded;
    } else {
      block.report_deadlock();
      return BlockState::failed;
    }
  }
}

} // namespace ptxrewrite::emulator
