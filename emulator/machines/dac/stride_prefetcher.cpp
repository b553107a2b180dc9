#include "emulator/machines/dac/stride_prefetcher.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// Accesses between two adjustments of the prefetch distance, and the share of unused lines that reduces it.
constexpr uint64_t throttle_period = 512;
constexpr double too_many_unused = 0.25;

bool is_global_load(const ir::Function& function, ir::InstructionId id) {
  return function.is_opcode(id, ir::Opcode::ld) && function.form_of(id).space == ir::StateSpace::global;
}

} // namespace

bool LineCache::contains(uint64_t line) const {
  const std::vector<uint64_t>& set = sets_[line / line_bytes % sets_.size()];
  return std::ranges::find(set, line) != set.end();
}

bool LineCache::touch(uint64_t line) {
  std::vector<uint64_t>& set = sets_[line / line_bytes % sets_.size()];
  const auto found = std::ranges::find(set, line);
  const bool hit = found != set.end();
  if (hit)
    set.erase(found);
  else if (set.size() == ways_)
    set.erase(set.begin());
  set.push_back(line);
  return hit;
}

PrefetchCounts& PrefetchCounts::operator+=(const PrefetchCounts& other) {
  accesses += other.accesses;
  misses += other.misses;
  covered += other.covered;
  prefetched += other.prefetched;
  unused += other.unused;
  return *this;
}

LoadPrefetches& LoadPrefetches::operator+=(const LoadPrefetches& other) {
  accesses += other.accesses;
  misses += other.misses;
  covered += other.covered;
  from_trips += other.from_trips;
  trips += other.trips;
  from_warps += other.from_warps;
  warps += other.warps;
  return *this;
}

bool StridePrefetcher::Stride::train(uint64_t address, int64_t steps) {
  const auto distance = static_cast<int64_t>(address - last);
  const bool fits = is_known && steps != 0 && distance % steps == 0;
  const int64_t now = fits ? distance / steps : 0;
  is_confirmed = fits && now == stride && now != 0;
  stride = now;
  last = address;
  is_known = true;
  return is_confirmed;
}

void StridePrefetcher::load(uint32_t instruction, uint64_t warp, uint64_t address, std::span<const uint64_t> lines) {
  LoadPrefetches& of_load = by_load_[instruction];
  for (uint64_t line : lines) {
    ++counts_.accesses;
    ++of_load.accesses;
    const auto waiting = std::ranges::find(buffer_, line, &Buffered::line);
    const bool is_buffered = waiting != buffer_.end();
    const Buffered found = is_buffered ? *waiting : Buffered();
    if (is_buffered) buffer_.erase(waiting);
    if (cache_.touch(line)) continue;
    ++counts_.misses;
    ++of_load.misses;
    if (!is_buffered) continue;
    ++counts_.covered;
    ++of_load.covered;
    ++(found.across ? of_load.from_warps : of_load.from_trips);
    (found.across ? of_load.warps : of_load.trips) += found.steps;
  }
  period_accesses_ += lines.size();
  if (period_accesses_ >= throttle_period) throttle();
  Load& known = loads_[instruction];
  Stride& within = known.of_warp[warp];
  const bool repeats = within.train(address, 1);
  const bool goes_on = known.across.train(address, static_cast<int64_t>(warp - known.last_warp));
  known.last_warp = warp;
  for (unsigned step = 1; step <= ahead_; ++step) {
    if (repeats) prefetch(lines, within.stride, step, false);
    if (goes_on) prefetch(lines, known.across.stride, step, true);
  }
}

void StridePrefetcher::prefetch(std::span<const uint64_t> lines, int64_t stride, unsigned steps, bool across) {
  const int64_t distance = stride * static_cast<int64_t>(steps);
  for (uint64_t line : lines) {
    const uint64_t wanted = (line + static_cast<uint64_t>(distance)) / line_bytes * line_bytes;
    if (cache_.contains(wanted) || std::ranges::find(buffer_, wanted, &Buffered::line) != buffer_.end()) continue;
    if (buffer_.size() == buffer_lines) {
      buffer_.pop_front();
      ++counts_.unused;
      ++period_unused_;
    }
    buffer_.push_back({wanted, steps, across});
    ++counts_.prefetched;
    ++period_prefetched_;
  }
}

// Prefetches less if many lines are unused, more if few are; after a pause, tries again.
void StridePrefetcher::throttle() {
  const bool too_many =
      period_unused_ > 0 && static_cast<double>(period_unused_) >
                                too_many_unused * static_cast<double>(std::max<uint64_t>(period_prefetched_, 1));
  if (too_many)
    ahead_ = ahead_ > 0 ? ahead_ - 1 : 0;
  else
    ahead_ = std::min(ahead_ + 1, most_ahead);
  period_prefetched_ = period_unused_ = period_accesses_ = 0;
}

void PrefetchStudy::before(Block& block, Warp& warp, const MicroOp& op) {
  const DecodedFunction& function = *warp.activation->function;
  const ir::InstructionId id(op.instruction - function.first_instruction);
  if (!is_global_load(*function.source, id) || !op.source[0].valid()) return;
  bool is_narrow = false;
  for (const OperandLanes& source : function.lanes_of[id.index()].sources)
    is_narrow |= source.lanes == op.source[0] && source.bits == 32;
  std::vector<uint64_t> lines;
  uint64_t first = 0;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint64_t base =
        is_narrow ? warp.lanes<uint32_t>(op.source[0])[lane] : warp.lanes<uint64_t>(op.source[0])[lane];
    const uint64_t address = base + static_cast<uint64_t>(op.immediate);
    if (lanes == warp.mask) first = address;
    const uint64_t line = address / line_bytes * line_bytes;
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  const uint64_t slot = block.linear / machines_.size() * block.launch->warps + warp.index;
  machines_[block.linear % machines_.size()].load(op.instruction, slot, first, lines);
}

std::map<uint32_t, LoadPrefetches> PrefetchStudy::by_load() const {
  std::map<uint32_t, LoadPrefetches> sum;
  for (const StridePrefetcher& machine : machines_)
    for (const auto& [instruction, counts] : machine.by_load())
      sum[instruction] += counts;
  return sum;
}

PrefetchCounts PrefetchStudy::counts() const {
  PrefetchCounts sum;
  for (const StridePrefetcher& machine : machines_)
    sum += machine.counts();
  return sum;
}

} // namespace ptxrewrite::emulator
