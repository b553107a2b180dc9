// Warps and regions, see staging_machine.h; the register accesses of instructions are in staging_execute.cpp.
#include "emulator/machines/regless/staging_machine.h"

#include "emulator/core/decode.h"
#include "ir/machine/registers/register_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

// Cycles of preloads: the compressor's bit vector takes one cycle, its tags and expansion two more for compressed
// registers (RegLess §5.3).
constexpr uint64_t bit_vector_cycles = 1, expansion_cycles = 2;
constexpr uint64_t window_cycles = 100;
// The other limits of an SM: Table 1, GTX 980.
constexpr uint32_t most_blocks = 32, register_file = 2048, shared_memory = 96 << 10;

uint16_t first_of(const ir::RegisterSet& set) {
  uint16_t number = 0;
  while (!set.test(number))
    ++number;
  return number;
}

BankCounts banks_of(const ir::RegLessMark& mark) {
  BankCounts counts;
  std::ranges::copy(mark.banks, counts.begin());
  return counts;
}

} // namespace

StagingMachine::StagingMachine(const StagingPlan& plan, const StagingSettings& settings, StagingCounters& counters)
    : plan_(&plan), stage_(settings.stage), counters_(&counters), unit_(plan.registers(), settings, counters),
      has_compressor_(settings.compressor_lines > 0), contexts_(staging_warps), slots_(plan.slots()),
      window_of_(size_t(staging_warps) * 256), issue_width_(settings.issue_width) {
  counters.by_region.resize(plan.region_count());
  for (std::vector<std::byte>& slot : slots_)
    slot.resize(lane_array_bytes * 4);
}

uint32_t StagingMachine::resident_blocks(const StagingPlan& plan, uint32_t warps, uint64_t shared_bytes) {
  const uint32_t registers = std::max(8u, (plan.registers() + 7) / 8 * 8); // in the register file that is replaced
  const uint32_t by_registers = register_file / registers;
  const auto by_memory = static_cast<uint32_t>(shared_memory / std::max<uint64_t>(shared_bytes, 1));
  return std::max(1u, std::min({staging_warps / warps, most_blocks, by_registers / warps, by_memory}));
}

void StagingMachine::add(Block& block) {
  uint32_t slot = 0;
  while (Warp* warp = block.start_next_warp()) {
    if (block.failure) return;
    while (contexts_[slot].state != State::absent)
      ++slot;
    Context& context = contexts_[slot];
    context = {};
    context.block = &block;
    context.warp = warp;
    context.value_ready.resize(plan_->values());
    context.home.resize(plan_->home_bytes());
    context.state = State::waiting;
    context.age = ages_++;
    unit_.start(slot);
  }
  for (slot = 0; slot < contexts_.size(); ++slot)
    if (contexts_[slot].block == &block && contexts_[slot].state == State::waiting) go_on(slot);
}

Block* StagingMachine::run() {
  while (over_.empty()) {
    bool busy = false;
    for (uint32_t shard = 0; shard < staging_shards && over_.empty(); ++shard) {
      for (uint32_t slot = shard; slot < contexts_.size(); slot += staging_shards) {
        Context& context = contexts_[slot];
        if (context.wake > now_ || context.queued > 0) continue;
        if (context.state == State::preloading) {
          context.state = State::active;
          context.started = now_;
          busy = true;
        } else if (context.state == State::draining) {
          finish_region(slot);
          busy = true;
        }
      }
      busy |= start_regions(shard);
      busy |= issue(shard);
      busy |= look_up(shard);
    }
    if (!over_.empty()) break;
    uint64_t next = busy ? now_ + 1 : next_event();
    if (next == UINT64_MAX) {
      for (Context& context : contexts_)
        if (context.state != State::absent && over_.empty()) {
          context.block->report_deadlock();
          if (!context.block->failure) fail(context, "a warp that can go on is never issued");
          over_.push_back({context.block, true});
        }
      if (over_.empty()) return nullptr;
      break;
    }
    counters_->cycles += next - now_;
    if (now_ / window_cycles != next / window_cycles) {
      window_ = next / window_cycles + 1;
      counters_->windows += next / window_cycles - now_ / window_cycles;
    }
    now_ = next;
  }
  auto [block, failed] = over_.front();
  over_.erase(over_.begin());
  return block;
}

uint64_t StagingMachine::next_event() const {
  uint64_t next = UINT64_MAX;
  for (uint32_t slot = 0; slot < contexts_.size(); ++slot) {
    const Context& context = contexts_[slot];
    if (context.queued > 0) return now_ + 1;
    if (context.state == State::preloading || context.state == State::draining) next = std::min(next, context.wake);
    if (context.state == State::active)
      next = std::min(next, std::max(context.ready, issue_free_[slot % staging_shards]));
  }
  for (uint64_t free : issue_free_)
    if (free > now_ && next != UINT64_MAX) next = std::min(next, std::max(free, now_ + 1));
  return next == UINT64_MAX ? next : std::max(next, now_ + 1);
}

// The warp that ran last starts its next region as soon as there is room for it (§5.1).
bool StagingMachine::start_regions(uint32_t shard) {
  for (size_t left = returning_[shard].size(); left > 0; --left) {
    const uint32_t waited = returning_[shard].front();
    returning_[shard].pop_front(); // first, because its completion may let others return
    if (leave_wait(waited)) return true;
    returning_[shard].push_back(waited);
  }
  std::deque<uint32_t>& stack = stacks_[shard];
  if (stack.empty()) return false;
  const uint32_t slot = stack.back();
  if (!unit_.has_room(slot, banks_of(plan_->region(plan_->instruction(contexts_[slot].instruction).region).mark))) {
    ++counters_->activation_waits;
    return false;
  }
  stack.pop_back();
  return activate(slot);
}

StagingMachine::Traffic StagingMachine::traffic() const {
  return {counters_->l1_requests(), counters_->compressed};
}

// Each request to the L1 cache and to the shard's compressor since `before` takes a cycle (Table 1).
void StagingMachine::pass(uint32_t slot, const Traffic& before) {
  pass(slot, counters_->l1_requests() - before.l1, counters_->compressed - before.compressed);
}

void StagingMachine::pass(uint32_t slot, uint64_t l1_requests, uint64_t compressor_writes) {
  uint64_t& compressor_free = compressor_free_[slot % staging_shards];
  l1_.request(now_, l1_requests);
  compressor_free = std::max(compressor_free, now_) + compressor_writes;
}

// Each bank whose tags no read uses in this cycle processes a preload (§5.2.1).
bool StagingMachine::look_up(uint32_t shard) {
  bool any = false;
  for (uint32_t bank = shard * banks_of_staging; bank < (shard + 1) * banks_of_staging; ++bank) {
    std::deque<QueuedPreload>& queue = queues_[bank];
    if (queue.empty()) continue;
    any = true;
    if (!ports_[bank].has_idle_tags(now_)) {
      counters_->preload_waits += queue.size();
      continue;
    }
    Context& context = contexts_[queue.front().slot];
    context.wake = std::max(context.wake, looked_up(queue.front()));
    if (--context.queued == 0) counters_->by_region[context.region].lookups += now_ + 1 - context.activated;
    queue.pop_front();
  }
  return any;
}

// The cycle in which a register that is looked up now is staged.
uint64_t StagingMachine::looked_up(const QueuedPreload& preload) {
  const uint32_t shard = preload.slot % staging_shards;
  const bool from_l1 = preload.source == PreloadSource::l1 || preload.source == PreloadSource::memory;
  pass(preload.slot, preload.l1_requests, preload.compressor_writes);
  uint64_t there = now_ + 1;
  if (from_l1) there = l1_.arrival(there, preload.line, preload.source == PreloadSource::memory, *counters_);
  if (preload.source != PreloadSource::staged && has_compressor_) there += bit_vector_cycles;
  if (preload.is_compressed && preload.source != PreloadSource::staged) {
    uint64_t& free = compressor_free_[shard];
    free = std::max(free, now_) + 1; // one access per cycle
    there = std::max(there, free) + expansion_cycles;
  }
  return there;
}

bool StagingMachine::activate(uint32_t slot) {
  Context& context = contexts_[slot];
  const uint32_t number = plan_->instruction(context.instruction).region;
  const StagedRegion& region = plan_->region(number);
  context.region = number;
  context.expected = 0;
  context.in_region = true;
  context.stood_back = 0;
  context.promised = banks_of(region.mark);
  context.held = {};
  unit_.reserve(slot, context.promised);
  counters_->by_region[number].dropped |= region.mark.invalidate & unit_.stored(slot);
  for (uint16_t r : ir::RegisterMembers(region.mark.invalidate))
    unit_.invalidate(slot, r);
  if (const ir::RegisterSet left = unit_.stored(slot) & ~region.needed; left.any())
    return fail(context, fmt::format("region {} starts while a copy of {} is kept, which no lane needs any more",
                                     number, name_of(first_of(left))));
  context.activated = now_;
  context.wake = now_ + 1;
  context.queued = 0;
  PreloadSource slowest = PreloadSource::staged;
  for (uint16_t r : ir::RegisterMembers(region.mark.preload)) {
    if (++context.held[r % banks_of_staging] > context.promised[r % banks_of_staging])
      return fail(context, fmt::format("region {} preloads more registers than it has entries for", number));
    const bool is_compressed = unit_.is_compressed(slot, r);
    const Traffic before = traffic();
    const PreloadSource source = unit_.preload(slot, r, region.mark.last_reads.test(r));
    queues_[StagingUnit::bank_index(slot, r)].push_back({slot, source, is_compressed, unit_.fetched_line(),
                                                         counters_->l1_requests() - before.l1,
                                                         counters_->compressed - before.compressed});
    ++context.queued;
    if (source != PreloadSource::undefined) slowest = std::max(slowest, source);
  }
  context.state = State::preloading;
  const uint32_t shard = slot % staging_shards;
  // The decode stage takes as many words per cycle as it issues instructions.
  issue_free_[shard] = std::max(issue_free_[shard], now_) + (region.metadata + issue_width_ - 1) / issue_width_;
  counters_->metadata += region.metadata;
  ++counters_->regions;
  RegionRuns& runs = counters_->by_region[number];
  ++runs.runs;
  ++runs.slowest[static_cast<size_t>(slowest)];
  counters_->region_instructions += region.weight;
  counters_->inputs += region.mark.preload.count();
  counters_->live += region.mark.live;
  counters_->live_squared += uint64_t(region.mark.live) * region.mark.live;
  return true;
}

// Issues greedy-then-oldest.
bool StagingMachine::issue(uint32_t shard) {
  bool any = false;
  while (issue_free_[shard] <= now_ && over_.empty()) {
    uint32_t chosen = UINT32_MAX;
    auto can_issue = [&](uint32_t slot) {
      return contexts_[slot].state == State::active && contexts_[slot].ready <= now_;
    };
    if (last_issued_[shard] % staging_shards == shard && can_issue(last_issued_[shard])) {
      chosen = last_issued_[shard];
    } else {
      for (uint32_t slot = shard; slot < contexts_.size(); slot += staging_shards)
        if (can_issue(slot) && (chosen == UINT32_MAX || contexts_[slot].age < contexts_[chosen].age)) chosen = slot;
    }
    if (chosen == UINT32_MAX) break;
    last_issued_[shard] = chosen;
    any = true;
    const StagedInstruction& row = plan_->instruction(contexts_[chosen].instruction);
    const uint32_t weight = row.weight;
    issue_free_[shard] = now_ + weight;
    counters_->instructions += weight;
    if (!execute(chosen)) return true;
    if (weight == 1 && issue_width_ > 1 && can_issue(chosen) && !issue_second(chosen, row.latency)) return true;
  }
  return any;
}

// Dual issue: the warp's next instruction in the same cycle, to other units.
bool StagingMachine::issue_second(uint32_t slot, StagedLatency first) {
  const StagedInstruction& row = plan_->instruction(contexts_[slot].instruction);
  if (row.weight != 1 || (first != StagedLatency::arithmetic && row.latency != StagedLatency::arithmetic)) return true;
  ++counters_->instructions;
  ++counters_->dual_issues;
  return execute(slot);
}

// After the region's last instruction has issued: releases its entries except those with pending results.
bool StagingMachine::leave_region(uint32_t slot) {
  Context& context = contexts_[slot];
  context.in_region = false;
  if (const ir::RegisterSet& left = unit_.staged(slot); left.any()) {
    uint16_t number = 0;
    while (!left.test(number))
      ++number;
    return fail(context, fmt::format("region {} leaves {} staged at its end", context.region, name_of(number)));
  }
  counters_->active_cycles += now_ + 1 - context.started;
  counters_->by_region[context.region].active_cycles += now_ + 1 - context.started;
  unit_.give_back(slot, context.promised);
  context.promised = {};
  context.state = State::draining;
  context.wake = now_ + 1;
  for (uint16_t number : context.leaving) {
    ++context.promised[number % banks_of_staging];
    context.wake = std::max(context.wake, context.register_ready[number]);
  }
  unit_.reserve(slot, context.promised);
  return true;
}

void StagingMachine::finish_region(uint32_t slot) {
  Context& context = contexts_[slot];
  counters_->whole_cycles += now_ - context.started;
  counters_->by_region[context.region].whole_cycles += now_ - context.started;
  for (uint16_t number : context.leaving)
    unit_.finish(slot, number);
  context.leaving.clear();
  unit_.give_back(slot, context.promised);
  context.promised = {};
  go_on(slot);
}

// Advances the warp to its next machine instruction.
void StagingMachine::go_on(uint32_t slot) {
  Context& context = contexts_[slot];
  Warp& warp = *context.warp;
  const MicroOp* op = context.op;
  context.op = nullptr;
  for (;;) {
    if (!op) {
      if (warp.state == WarpState::failed) {
        over_.push_back({context.block, true});
        return;
      }
      if (warp.state == WarpState::finished) return warp_ended(slot);
      if (warp.state == WarpState::waiting) {
        if (context.in_region &&
            plan_->instruction(context.instruction).place + 1 != plan_->region(context.region).instructions) {
          fail(context, fmt::format("region {} waits for other warps before its end", context.region));
          return;
        }
        context.state = State::waiting;
        Block& block = *context.block;
        block.note_arrival(warp);
        return block_changed(block);
      }
      context.spins |= warp.state == WarpState::yielded;
      warp.state = WarpState::runnable;
      op = warp.next_split();
      continue;
    }
    if (context.unfinished) {
      const StagedInstruction& row = plan_->instruction(context.instruction);
      if (op->instruction != plan_->entry().first_instruction + row.id.index()) {
        context.op = op;
        if (leave_wait(slot)) return;
        context.state = State::inactive;
        returning_[slot % staging_shards].push_back(slot);
        return;
      }
      op = step(context, *op);
      continue;
    }
    if (warp.activation != &warp.root) { // device functions are executed unchanged
      op = step(context, *op);
      continue;
    }
    const StagedPlace& place = plan_->place(code_index(*op));
    if (place.instruction == StagedPlace::none) {
      op = step(context, *op);
      continue;
    }
    const StagedInstruction& row = plan_->instruction(place.instruction);
    if (stage_ && row.is_free) {
      op = execute_free(context, slot, row, op);
      if (!over_.empty()) return;
      continue;
    }
    if (!row.is_issued) {
      op = stage_ ? plan_->entry().code.data() + place.past : step(context, *op);
      continue;
    }
    context.op = op;
    context.instruction = place.instruction;
    if (!context.in_region && stand_back(context, plan_->region(row.region))) {
      op = warp.next_split();
      continue;
    }
    return enter(slot);
  }
}

// The cycle in which entries for the instruction's results are free: some may wait for results without readers.
uint64_t StagingMachine::entries_free(uint32_t slot, const StagedInstruction& row) {
  Context& context = contexts_[slot];
  uint64_t free = now_;
  BankCounts need = context.held;
  for (uint16_t number : ir::RegisterMembers(row.written))
    if (!unit_.staged(slot).test(number) && std::ranges::find(context.leaving, number) == context.leaving.end())
      ++need[number % banks_of_staging];
  for (uint32_t bank = 0; bank < banks_of_staging; ++bank) {
    std::vector<uint64_t> times;
    if (need[bank] > context.promised[bank])
      for (uint16_t number : context.leaving)
        if (number % banks_of_staging == bank) times.push_back(context.register_ready[number]);
    std::ranges::sort(times);
    const uint32_t missing = need[bank] - std::min(need[bank], context.promised[bank]);
    if (missing > 0 && missing <= times.size()) free = std::max(free, times[missing - 1]);
  }
  return free;
}

// Releases the entries of registers whose last results have arrived.
void StagingMachine::collect(uint32_t slot) {
  Context& context = contexts_[slot];
  std::erase_if(context.leaving, [&](uint16_t number) {
    if (context.register_ready[number] > now_) return false;
    unit_.finish(slot, number);
    --context.held[number % banks_of_staging];
    return true;
  });
}

// Lanes that only wait to end together with other lanes end at once, as on machines where a branch to an exit is itself
// an exit.
void StagingMachine::end_waiting(Warp& warp) {
  for (const Meeting& place : warp.meetings) {
    if (!place.in_use || place.arrived == 0 || place.callee || place.activation != &warp.root) continue;
    const MicroOp* op = place.at;
    while (is_region_entry(*op))
      ++op;
    const uint32_t number = plan_->place(code_index(*op)).instruction;
    if (number == StagedPlace::none || !plan_->instruction(number).ends) continue;
    const uint32_t lanes = place.arrived;
    warp.live &= ~lanes;
    warp.remove_from_meetings(lanes);
  }
}

// Lanes that are to meet others in the region let lanes elsewhere run first: those may come to the region, or end.
// Lanes of one branch that are before the region continue together.
bool StagingMachine::stand_back(Context& context, const StagedRegion& region) {
  Warp& warp = *context.warp;
  if (!region.gathers_lanes || (warp.live & ~warp.active) == 0) return false;
  end_waiting(warp);
  std::erase_if(warp.splits, [&](const Split& split) {
    const bool joins = split.state == SplitState::runnable && split.next == context.op &&
                       split.activation == warp.activation && split.meeting == warp.meeting;
    if (joins) warp.active |= split.mask;
    return joins;
  });
  if ((warp.live & ~warp.active) == 0 || context.stood_back > warp.splits.size()) return false;
  ++context.stood_back;
  warp.splits.insert(warp.splits.begin(),
                     {context.op, warp.activation, warp.active, warp.meeting, SplitState::runnable, 0});
  context.op = nullptr;
  return true;
}

// Enters the next instruction, which belongs to the current region or starts another one.
void StagingMachine::enter(uint32_t slot) {
  Context& context = contexts_[slot];
  const StagedInstruction& row = plan_->instruction(context.instruction);
  if (context.in_region) {
    if (row.region != context.region || row.place != context.expected) {
      fail(context, fmt::format("lanes part inside of region {}, which is not emulated", context.region), 0,
           FailureKind::not_emulated);
      return;
    }
    uint64_t ready = entries_free(slot, row);
    for (const StagedStep& step : row.steps)
      if (step.kind == StagedStep::Kind::fetch) ready = std::max(ready, context.value_ready[step.value]);
    for (uint32_t value : row.writes)
      ready = std::max(ready, context.value_ready[value]);
    context.ready = ready;
    return;
  }
  if (row.place != 0) {
    fail(context, fmt::format("a warp comes into the middle of region {}", row.region));
    return;
  }
  context.state = State::inactive;
  std::deque<uint32_t>& stack = stacks_[slot % staging_shards];
  if (std::exchange(context.spins, false))
    stack.push_front(slot); // spinning: other warps first
  else
    stack.push_back(slot);
}

// Resumes warps that waited.
void StagingMachine::block_changed(Block& block) {
  for (uint32_t slot = 0; slot < contexts_.size(); ++slot) {
    Context& context = contexts_[slot];
    if (context.block == &block && context.state == State::waiting && context.warp->state == WarpState::runnable)
      go_on(slot);
  }
}

void StagingMachine::warp_ended(uint32_t slot) {
  Context& context = contexts_[slot];
  Block& block = *context.block;
  const ir::RegisterSet copies = unit_.stored(slot) & ~plan_->instruction(context.instruction).needed_elsewhere;
  if (const ir::RegisterSet left = copies | unit_.staged(slot); left.any()) {
    fail(context, fmt::format("a warp ends and leaves a copy of {}", name_of(first_of(left))));
    return;
  }
  unit_.forget(slot);
  context.state = State::absent;
  context.block = nullptr;
  block.warp_finished(*context.warp);
  if (block.live_warps == 0)
    over_.push_back({&block, false});
  else
    block_changed(block);
}

} // namespace ptxrewrite::emulator
