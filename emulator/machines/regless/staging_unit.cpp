#include "emulator/machines/regless/staging_unit.h"

#include <algorithm>
#include <cassert>

namespace ptxrewrite::emulator {

StagingUnit::StagingUnit(uint32_t registers, const StagingSettings& settings, StagingCounters& counters)
    : lines_per_bank_(settings.entries / (staging_shards * banks_of_staging)), counters_(&counters),
      lines_(size_t(lines_per_bank_) * staging_shards * banks_of_staging), banks_(staging_shards * banks_of_staging),
      warps_(staging_warps), memory_(staging_warps, registers, settings, counters) {
  for (size_t i = 0; i < lines_.size(); ++i)
    banks_[i / lines_per_bank_].free.push_back(static_cast<int32_t>(i));
  for (uint32_t warp = 0; warp < staging_warps; ++warp)
    start(warp);
}

void StagingUnit::start(uint32_t warp) {
  WarpRegisters& state = warps_[warp];
  assert(state.staged.none() && state.stored.none());
  state.ever_written.reset();
  state.line.fill(nowhere);
}

bool StagingUnit::has_room(uint32_t warp, const BankCounts& need) const {
  for (uint32_t r = 0; r < banks_of_staging; ++r)
    if (banks_[bank_index(warp, r)].reserved + need[r] > lines_per_bank_) return false;
  return true;
}

void StagingUnit::reserve(uint32_t warp, const BankCounts& need) {
  for (uint32_t r = 0; r < banks_of_staging; ++r)
    bank_of(warp, r).reserved += need[r];
}

void StagingUnit::give_back(uint32_t warp, const BankCounts& need) {
  for (uint32_t r = 0; r < banks_of_staging; ++r)
    bank_of(warp, r).reserved -= need[r];
}

// Takes a line from the free list, else the clean list, else the dirty list, whose register is written back (§5.2).
StagingUnit::Line& StagingUnit::take_line(uint32_t warp, uint32_t number) {
  Bank& bank = bank_of(warp, number);
  std::deque<int32_t>& list = !bank.free.empty() ? bank.free : !bank.clean.empty() ? bank.clean : bank.dirty;
  assert(!list.empty()); // guaranteed by reservations
  const int32_t index = list.front();
  list.pop_front();
  Line& line = lines_[static_cast<size_t>(index)];
  if (line.use == Use::dirty) {
    ++counters_->written_back;
    ++counters_->entry_reads;
    memory_.store(line.warp, line.number, line.content);
  }
  if (line.use != Use::free) warps_[line.warp].line[line.number] = nowhere;
  line.warp = warp;
  line.number = number;
  line.use = Use::active;
  line.content.lanes = 0;
  line.content.words.fill(0);
  warps_[warp].line[number] = index;
  warps_[warp].staged.set(number);
  return line;
}

void StagingUnit::remove_from_list(int32_t index) {
  const Line& line = lines_[static_cast<size_t>(index)];
  Bank& bank = bank_of(line.warp, line.number);
  std::deque<int32_t>& list = line.use == Use::clean ? bank.clean : bank.dirty;
  list.erase(std::ranges::find(list, index));
}

void StagingUnit::put_free(int32_t index) {
  Line& line = lines_[static_cast<size_t>(index)];
  warps_[line.warp].line[line.number] = nowhere;
  bank_of(line.warp, line.number).free.push_back(index);
  line.use = Use::free;
}

PreloadSource StagingUnit::preload(uint32_t warp, uint32_t number, bool drops) {
  WarpRegisters& state = warps_[warp];
  ++counters_->tag_lookups;
  PreloadSource source = PreloadSource::staged;
  if (const int32_t index = state.line[number]; index != nowhere) {
    remove_from_list(index);
    lines_[static_cast<size_t>(index)].use = Use::active;
    state.staged.set(number);
  } else {
    Line& line = take_line(warp, number);
    ++counters_->entry_writes;
    if (memory_.holds(warp, number)) {
      RegisterMemory::Fetched fetched = memory_.fetch(warp, number);
      line.content = fetched.content;
      source = fetched.source;
      fetched_line_ = fetched.line;
      line.is_dirty = false;
    } else { // unwritten registers are zero, as in the whole emulator; dropped ones are undefined
      line.content.lanes = state.ever_written.test(number) ? 0 : UINT32_MAX;
      source = PreloadSource::undefined;
      line.is_dirty = true;
    }
  }
  if (drops) {
    memory_.drop(warp, number);
    lines_[static_cast<size_t>(state.line[number])].is_dirty = true;
    state.stored.reset(number);
  } else {
    state.stored.set(number); // a fetched register that was never written has a line in L1
  }
  ++counters_->preloads[static_cast<size_t>(source)];
  return source;
}

const RegisterContent* StagingUnit::active(uint32_t warp, uint32_t number) const {
  const WarpRegisters& state = warps_[warp];
  return state.staged.test(number) ? &lines_[static_cast<size_t>(state.line[number])].content : nullptr;
}

RegisterContent& StagingUnit::written(uint32_t warp, uint32_t number) {
  WarpRegisters& state = warps_[warp];
  state.ever_written.set(number);
  if (!state.staged.test(number) && state.line[number] != nowhere) { // erased in this region, with a pending result
    Line& line = lines_[static_cast<size_t>(state.line[number])];
    line.use = Use::active;
    line.content.lanes = 0;
    line.content.words.fill(0);
    state.staged.set(number);
  }
  Line& line = state.staged.test(number) ? lines_[static_cast<size_t>(state.line[number])] : take_line(warp, number);
  line.is_dirty = true;
  return line.content;
}

void StagingUnit::erase(uint32_t warp, uint32_t number, bool later) {
  warps_[warp].staged.reset(number);
  lines_[static_cast<size_t>(warps_[warp].line[number])].use = Use::leaving_free;
  if (!later) finish(warp, number);
}

void StagingUnit::evict(uint32_t warp, uint32_t number, bool later) {
  warps_[warp].staged.reset(number);
  warps_[warp].stored.set(number);
  lines_[static_cast<size_t>(warps_[warp].line[number])].use = Use::leaving_evicted;
  if (!later) finish(warp, number);
}

void StagingUnit::finish(uint32_t warp, uint32_t number) {
  const int32_t index = warps_[warp].line[number];
  if (index == nowhere) return;
  Line& line = lines_[static_cast<size_t>(index)];
  if (line.use == Use::leaving_free) put_free(index);
  if (line.use != Use::leaving_evicted) return;
  line.use = line.is_dirty ? Use::dirty : Use::clean;
  Bank& bank = bank_of(warp, number);
  (line.is_dirty ? bank.dirty : bank.clean).push_back(index);
}

void StagingUnit::forget(uint32_t warp) {
  WarpRegisters& state = warps_[warp];
  for (uint32_t number = 0; number < state.stored.size(); ++number) {
    if (!state.stored.test(number)) continue;
    invalidate(warp, number);
    --counters_->invalidations; // not requested by an annotation
  }
}

void StagingUnit::invalidate(uint32_t warp, uint32_t number) {
  WarpRegisters& state = warps_[warp];
  ++counters_->invalidations;
  state.stored.reset(number);
  memory_.drop(warp, number);
  if (const int32_t index = state.line[number]; index != nowhere && !state.staged.test(number)) {
    remove_from_list(index);
    put_free(index);
  }
}

} // namespace ptxrewrite::emulator
