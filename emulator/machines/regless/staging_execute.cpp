// Executes one machine instruction: reads its operands from staged registers and writes its results to them.
#include "emulator/core/decode.h"
#include "emulator/machines/regless/staging_machine.h"
#include "ir/machine/registers/register_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

// Cycles until a dependent instruction can issue; data bypasses the L1 cache (Table 1).
uint64_t cycles_of(StagedLatency latency) {
  switch (latency) {
  case StagedLatency::special:
    return 20;
  case StagedLatency::shared:
    return 24;
  case StagedLatency::memory:
    return 300;
  default:
    return 6;
  }
}

template <class Word> void spread(const uint32_t* words, std::byte* lanes) {
  auto* to = reinterpret_cast<Word*>(lanes);
  for (unsigned lane = 0; lane < warp_size; ++lane)
    to[lane] = static_cast<Word>(words[lane]);
}

template <class Word> void gather(const std::byte* lanes, uint32_t mask, RegisterLanes& words) {
  const auto* from = reinterpret_cast<const Word*>(lanes);
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if (mask >> lane & 1) words[lane] = from[lane];
}

} // namespace

std::string StagingMachine::name_of(uint16_t number) const {
  return "R" + std::to_string(number);
}

bool StagingMachine::fail(Context& context, std::string_view message, unsigned lane, FailureKind kind) {
  Warp& warp = *context.warp;
  const MicroOp* op = context.op ? context.op : &plan_->entry().code.front();
  for (const Split& split : warp.splits)
    if (!context.op) op = split.next;
  constexpr std::string_view machine = "RegLess: ";
  const bool named = message.starts_with(machine);
  context.block->fail(warp, *op, lane, std::string(named ? "" : machine).append(message), kind);
  over_.push_back({context.block, true});
  return false;
}

const MicroOp* StagingMachine::step(Context& context, const MicroOp& op) {
  Warp& warp = *context.warp;
  // Lanes that have left a loop wait at the reconvergence point: annotations depend on it. So a loop that may wait for
  // other warps (Warp::yield) lets those run first, and other lanes of its warp only if that does not help.
  constexpr uint32_t patience = 15, most_turns = 4096;
  if (warp.patience >= patience && context.turns < most_turns) {
    warp.patience = 0;
    ++context.turns;
    context.spins = true;
  }
  const uint32_t mask = warp.active & warp.guard_mask(op);
  if (op.counts_guard) {
    GuardCounter& counter = warp.block->counters->guards[op.instruction];
    counter.lanes += static_cast<unsigned>(std::popcount(mask));
    counter.off += mask == 0;
  }
  if (mask == 0) return &op + 1;
  warp.mask = mask;
  return op.handler(warp, op);
}

bool StagingMachine::execute(uint32_t slot) {
  Context& context = contexts_[slot];
  Warp& warp = *context.warp;
  const StagedInstruction& row = plan_->instruction(context.instruction);
  const MicroOp* first = context.op;
  const MicroOp* past = plan_->entry().code.data() + plan_->place(code_index(*first)).past;
  const MicroOp* next = past;
  if (!context.leaving.empty()) collect(slot);
  touch(slot, row.read | row.written);
  operands_read_ = read_operands(slot, row);
  counters_->reads += row.read.count();
  counters_->writes += row.written.count();
  counters_->tag_lookups += row.read.count() + row.written.count();
  if (row.is_executed || !stage_) {
    if (!prepare(context, slot, row)) return false;
    const MicroOp* own = first;
    while (!own->is_instruction)
      ++own;
    const uint32_t mask = warp.active & warp.guard_mask(*own);
    if (!check_reads(context, slot, row, mask)) return false;
    const uint32_t active = warp.active;
    const std::less<const MicroOp*> before;
    const auto is_here = [&](const MicroOp* op) { return !before(op, first) && before(op, past); };
    next = first;
    while (next && is_here(next))
      next = step(context, *next);
    if (warp.state == WarpState::failed) {
      over_.push_back({context.block, true});
      return false;
    }
    for (const Split& split : warp.splits)
      if (split.state == SplitState::at_warp_sync && split.next >= first && split.next < past && split.mask == active)
        return fail(context, "lanes that part meet inside of a region, which is not emulated", 0,
                    FailureKind::not_emulated);
    // A call's results are written when it returns. Lanes that call different functions through a register
    // run one function after the other and reconverge at the next region's entry: step until the warp is
    // there.
    if (warp.activation && warp.activation != &warp.root)
      while (next && (warp.activation != &warp.root || is_here(next) || is_region_entry(*next)))
        next = step(context, *next);
    const auto is_inside = [&](const Split& split) { return before(first, split.next) && before(split.next, past); };
    if (!next && std::ranges::any_of(warp.splits, is_inside)) return wait_inside(slot, row, mask);
    context.mask = mask;
  }
  return complete(slot, next);
}

// The cycle in which the last operand is read: each bank reads one per cycle.
uint64_t StagingMachine::read_operands(uint32_t slot, const StagedInstruction& row) {
  uint64_t last = now_;
  for (uint16_t number : ir::RegisterMembers(row.read))
    last = std::max(last, ports_[StagingUnit::bank_index(slot, number)].read(now_));
  counters_->operand_waits += last - now_;
  counters_->by_region[row.region].operand_waits += last - now_;
  return last;
}

// Not a machine instruction: reads and writes values that are stored outside of the unit.
const MicroOp* StagingMachine::execute_free(Context& context, uint32_t slot, const StagedInstruction& row,
                                            const MicroOp* op) {
  if (!prepare(context, slot, row)) return nullptr;
  const MicroOp* past = plan_->entry().code.data() + plan_->place(code_index(*op)).past;
  const MicroOp* own = op;
  while (!own->is_instruction)
    ++own;
  const uint32_t mask = context.warp->active & context.warp->guard_mask(*own);
  while (op != past)
    op = step(context, *op);
  for (uint32_t value : row.writes)
    if (!write_value(context, slot, plan_->value(value), mask)) return nullptr;
  return past;
}

// A barrier with a result. While it waits, the warp holds no entries but those of pending results: other warps of the
// block have to get to the barrier.
bool StagingMachine::wait_inside(uint32_t slot, const StagedInstruction& row, uint32_t mask) {
  Context& context = contexts_[slot];
  context.unfinished = true;
  context.mask = mask;
  context.op = nullptr;
  if (!release(context, slot, row.erase & ~row.written, row.evict & ~row.written)) return false;
  unit_.give_back(slot, context.promised);
  context.promised = {};
  for (uint16_t number : context.leaving)
    ++context.promised[number % banks_of_staging];
  unit_.reserve(slot, context.promised);
  go_on(slot);
  return over_.empty();
}

// Completes the barrier once there are entries for its results. Returns false if there are none.
bool StagingMachine::leave_wait(uint32_t slot) {
  Context& context = contexts_[slot];
  const BankCounts results = banks_of_results(slot);
  if (!unit_.has_room(slot, results)) return false;
  unit_.reserve(slot, results);
  for (uint32_t bank = 0; bank < banks_of_staging; ++bank)
    context.promised[bank] += results[bank];
  complete(slot, std::exchange(context.op, nullptr));
  return true;
}

BankCounts StagingMachine::banks_of_results(uint32_t slot) const {
  BankCounts counts{};
  for (uint16_t number : ir::RegisterMembers(plan_->instruction(contexts_[slot].instruction).written))
    ++counts[number % banks_of_staging];
  return counts;
}

// Completes the instruction; `next` is the following micro-operation.
bool StagingMachine::complete(uint32_t slot, const MicroOp* next) {
  Context& context = contexts_[slot];
  const StagedInstruction& row = plan_->instruction(context.instruction);
  const bool was_released = std::exchange(context.unfinished, false);
  if (row.is_executed || !stage_)
    for (uint32_t value : row.writes)
      if (!write_value(context, slot, plan_->value(value), context.mask)) return false;
  const uint64_t read = std::max(now_, was_released ? now_ : operands_read_);
  const uint64_t computed = read + std::max<uint64_t>(1, row.weight) + cycles_of(row.latency);
  for (uint32_t value : row.writes) {
    uint64_t& ready = context.value_ready[value] = computed;
    for (uint16_t number : plan_->value(value).registers) {
      // In the cycle after its write a dependent instruction can read it.
      context.register_ready[number] = ports_[StagingUnit::bank_index(slot, number)].write(computed - 1) + 1;
      ready = std::max(ready, context.register_ready[number]);
    }
  }
  const ir::RegisterSet left = was_released ? row.written : ~ir::RegisterSet();
  if (!release(context, slot, row.erase & left, row.evict & left)) return false;
  context.op = next;
  context.expected = row.place + 1;
  if (row.place + 1 < plan_->region(row.region).instructions) {
    go_on(slot);
    return over_.empty();
  }
  return leave_region(slot);
}

// Copies operands to their lanes.
bool StagingMachine::prepare(Context& context, uint32_t slot, const StagedInstruction& row) {
  Warp& warp = *context.warp;
  std::byte* frame = warp.root.registers;
  auto lanes = [&](uint32_t text_value) { return frame + plan_->lanes(text_value).offset(); };
  for (const StagedStep& step : row.steps) {
    if (!stage_ && (step.kind != StagedStep::Kind::fetch || plan_->value(step.value).registers.empty())) continue;
    switch (step.kind) {
    case StagedStep::Kind::fetch:
      if (!fetch(context, slot, plan_->value(step.value))) return false;
      break;
    case StagedStep::Kind::execute: {
      const MicroOp* code = plan_->entry().code.data();
      for (uint32_t at = step.first; at < step.past; ++at) {
        warp.mask = warp.active;
        code[at].handler(warp, code[at]);
      }
      break;
    }
    case StagedStep::Kind::add:
      for (unsigned lane = 0; lane < warp_size; ++lane)
        if (plan_->bits(step.value) == 64)
          reinterpret_cast<uint64_t*>(lanes(step.value))[lane] =
              reinterpret_cast<uint64_t*>(lanes(step.source))[lane] + static_cast<uint64_t>(step.constant);
        else
          reinterpret_cast<uint32_t*>(lanes(step.value))[lane] =
              reinterpret_cast<uint32_t*>(lanes(step.source))[lane] + static_cast<uint32_t>(step.constant);
      break;
    case StagedStep::Kind::save:
      std::memcpy(slots_[step.slot].data(), lanes(step.value), lane_array_size(plan_->bits(step.value)));
      break;
    case StagedStep::Kind::restore:
      std::memcpy(lanes(step.value), slots_[step.slot].data(), lane_array_size(plan_->bits(step.value)));
      break;
    case StagedStep::Kind::zero:
      std::memset(lanes(step.value), 0, lane_array_size(plan_->bits(step.value)));
      break;
    }
  }
  return true;
}

bool StagingMachine::fetch(Context& context, uint32_t slot, const StagedValue& value) {
  std::byte* lanes = context.warp->root.registers + value.lanes.offset();
  const size_t count = value.registers.size();
  if (count == 0) {
    std::memcpy(lanes, context.home.data() + value.home, lane_array_size(value.bits));
    return true;
  }
  const uint32_t* words[4] = {};
  for (size_t i = 0; i < count; ++i) {
    const RegisterContent* content = unit_.active(slot, value.registers[i]);
    if (!content)
      return fail(context,
                  fmt::format("region {} reads {}, which is not staged", context.region, name_of(value.registers[i])));
    words[i] = content->words.data();
  }
  if (!stage_) return true;
  switch (value.bits) {
  case 8:
    spread<uint8_t>(words[0], lanes);
    break;
  case 16:
    spread<uint16_t>(words[0], lanes);
    break;
  case 32:
    spread<uint32_t>(words[0], lanes);
    break;
  default: // lanes of several words, the lowest word first
    for (unsigned lane = 0; lane < warp_size; ++lane)
      for (size_t i = 0; i < count; ++i)
        reinterpret_cast<uint32_t*>(lanes)[lane * count + i] = words[i][lane];
  }
  return true;
}

bool StagingMachine::check_reads(Context& context, uint32_t slot, const StagedInstruction& row, uint32_t mask) {
  for (uint16_t number : ir::RegisterMembers(row.read)) {
    const uint32_t lost = mask & ~unit_.active(slot, number)->lanes;
    if (lost)
      return fail(context,
                  fmt::format("region {} reads {}, whose lanes that did not take part in its last definition are lost",
                              context.region, name_of(number)),
                  static_cast<unsigned>(std::countr_zero(lost)));
  }
  return true;
}

bool StagingMachine::write_value(Context& context, uint32_t slot, const StagedValue& value, uint32_t mask) {
  const std::byte* lanes = context.warp->root.registers + value.lanes.offset();
  if (value.registers.empty()) {
    std::byte* home = context.home.data() + value.home;
    if (value.bits == 1) {
      uint32_t now = 0, old = 0;
      std::memcpy(&now, lanes, sizeof now);
      std::memcpy(&old, home, sizeof old);
      now = (now & mask) | (old & ~mask);
      std::memcpy(home, &now, sizeof now);
      return true;
    }
    const size_t bytes = value.bits / 8;
    for (unsigned lane = 0; lane < warp_size; ++lane)
      if (mask >> lane & 1) std::memcpy(home + lane * bytes, lanes + lane * bytes, bytes);
    return true;
  }
  for (size_t i = 0; i < value.registers.size(); ++i) {
    const uint16_t number = value.registers[i];
    const uint32_t bank = number % banks_of_staging;
    if (unit_.stored(slot).test(number))
      return fail(context,
                  fmt::format("region {} writes {}, of which an old copy is kept", context.region, name_of(number)));
    if (unit_.active(slot, number) && !plan_->instruction(context.instruction).updated.test(number))
      return fail(context,
                  fmt::format("region {} writes {} over what it did not release", context.region, name_of(number)));
    if (!unit_.active(slot, number)) {
      if (plan_->instruction(context.instruction).updated.test(number))
        return fail(context, fmt::format("region {} writes {} in part and has not preloaded it", context.region,
                                         name_of(number)));
      const bool waited_for = std::ranges::find(context.leaving, number) != context.leaving.end();
      if (waited_for) std::erase(context.leaving, number);
      if (!waited_for && ++context.held[bank] > context.promised[bank])
        return fail(context, fmt::format("region {} has no entry for {}", context.region, name_of(number)));
    }
    const Traffic before = traffic();
    RegisterContent& content = unit_.written(slot, number);
    pass(slot, before);
    content.lanes |= mask;
    switch (value.bits) {
    case 8:
      gather<uint8_t>(lanes, mask, content.words);
      break;
    case 16:
      gather<uint16_t>(lanes, mask, content.words);
      break;
    default:
      for (unsigned lane = 0; lane < warp_size; ++lane)
        if (mask >> lane & 1)
          content.words[lane] = reinterpret_cast<const uint32_t*>(lanes)[lane * value.registers.size() + i];
    }
  }
  return true;
}

bool StagingMachine::release(Context& context, uint32_t slot, const ir::RegisterSet& erase,
                             const ir::RegisterSet& evict) {
  const ir::RegisterSet released = erase | evict;
  for (uint16_t number : ir::RegisterMembers(released)) {
    const bool erased = erase.test(number);
    if (!unit_.staged(slot).test(number))
      return fail(context, fmt::format("region {} {} {}, which is not staged", context.region,
                                       erased ? "erases" : "evicts", name_of(number)));
    if (erased && unit_.stored(slot).test(number))
      return fail(context,
                  fmt::format("region {} erases {}, of which a copy is kept", context.region, name_of(number)));
    const bool later = context.register_ready[number] > now_;
    if (later)
      context.leaving.push_back(number);
    else
      --context.held[number % banks_of_staging];
    if (erased)
      unit_.erase(slot, number, later);
    else
      unit_.evict(slot, number, later);
  }
  return true;
}

void StagingMachine::touch(uint32_t slot, const ir::RegisterSet& registers) {
  for (uint16_t number : ir::RegisterMembers(registers)) {
    uint64_t& last = window_of_[size_t(slot) * 256 + number];
    if (last == window_) continue;
    last = window_;
    ++counters_->window_registers;
  }
}

} // namespace ptxrewrite::emulator
