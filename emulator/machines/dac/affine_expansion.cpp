#include "emulator/machines/dac/affine_expansion.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace ptxrewrite::emulator {
namespace {

// Accumulates addresses in steps from one thread of a block to the next.
class Accumulator {
public:
  Accumulator(const AffineTuple& tuple, const ThreadPosition& start, const Dimensions& block)
      : tuple_(tuple), value_(start_of(tuple, start)) {
    const IndexOffsets& offsets = tuple.modulo ? tuple.modulo->offsets : tuple.offsets;
    lane_step_ = offsets[0];
    row_step_ = offsets[1] - (block.x - 1) * offsets[0];
    plane_step_ = offsets[2] - (block.y - 1) * offsets[1] - (block.x - 1) * offsets[0];
  }

  void step_to(const ThreadPosition& next) {
    value_ += next[0] != 0 ? lane_step_ : next[1] != 0 ? row_step_ : plane_step_;
  }
  uint64_t value() const {
    AffineTuple here = tuple_;
    if (here.modulo) {
      here.modulo->base = value_;
      here.modulo->offsets = {};
      return here.at({});
    }
    return low_bits(value_, tuple_.bits);
  }

private:
  // The block's base address plus the offset of the warp's first thread.
  static uint64_t start_of(const AffineTuple& tuple, const ThreadPosition& start) {
    uint64_t value = tuple.modulo ? tuple.modulo->base : tuple.base;
    const IndexOffsets& offsets = tuple.modulo ? tuple.modulo->offsets : tuple.offsets;
    for (unsigned i = 0; i < index_components; ++i)
      value += offsets[i] * start[i];
    return value;
  }

  const AffineTuple& tuple_;
  uint64_t value_;
  uint64_t lane_step_ = 0, row_step_ = 0, plane_step_ = 0;
};

void touch(WarpAddresses& record, uint64_t address, unsigned bytes) {
  const uint64_t line_bytes = uint64_t(record.unit) * warp_size;
  // The address is arbitrary and its end may wrap: units are counted, not compared.
  const uint64_t first = address / record.unit, count = (address % record.unit + bytes - 1) / record.unit + 1;
  for (uint64_t unit = first; unit - first < count; ++unit) {
    const uint64_t line = unit * record.unit / line_bytes * line_bytes;
    auto found = std::ranges::find(record.lines, line, &TouchedLine::address);
    if (found == record.lines.end()) found = record.lines.insert(found, {line, 0});
    found->units |= 1u << (unit % warp_size);
  }
}

// The number that the bits represent, signed or unsigned.
__int128 number(uint64_t value, const AffineComparison& comparison) {
  return comparison.is_signed ? __int128(static_cast<int64_t>(sign_extended(value, comparison.bits))) : __int128(value);
}

// Two threads of the warp whose values bound those of all its threads: requires that a single index changes the tuple
// within the warp, without wrapping. They are the first and last lane, except if a warp of several rows has a tuple of
// tid.x.
std::optional<std::array<ThreadPosition, 2>> ends_of(const AffineTuple& tuple, const AffineComparison& comparison,
                                                     const AffineBatch& batch, uint32_t warp, unsigned last) {
  if (tuple.modulo) return std::nullopt;
  std::array<ThreadPosition, 2> ends = {batch.position(warp, 0), batch.position(warp, last)};
  unsigned changing = 0;
  if (ends[0][1] != ends[1][1] || ends[0][2] != ends[1][2]) {
    const auto is_used = [&](unsigned index) { return low_bits(tuple.offsets[index], tuple.bits) != 0; };
    if (is_used(0) + is_used(1) + is_used(2) != 1) return std::nullopt;
    changing = is_used(0) ? 0 : is_used(1) ? 1 : 2;
    for (unsigned lane = 0; lane <= last; ++lane) {
      const ThreadPosition at = batch.position(warp, lane);
      if (at[changing] < ends[0][changing]) ends[0] = at;
      if (at[changing] > ends[1][changing]) ends[1] = at;
    }
  }
  const auto step = static_cast<int64_t>(sign_extended(tuple.offsets[changing], tuple.bits));
  const __int128 distance = __int128(ends[1][changing]) - ends[0][changing];
  if (number(tuple.at(ends[0]), comparison) + step * distance != number(tuple.at(ends[1]), comparison))
    return std::nullopt;
  return ends;
}

} // namespace

WarpAddresses expand_addresses(std::span<const AffineValue::Part> parts, unsigned bytes, const AffineBatch& batch,
                               uint32_t warp) {
  WarpAddresses record;
  record.unit = std::min(bytes, 4u);
  const auto lanes = static_cast<unsigned>(std::popcount(batch.members(warp)));
  ThreadPosition position = batch.position(warp, 0);
  std::vector<Accumulator> accumulators;
  for (const AffineValue::Part& part : parts)
    accumulators.emplace_back(part.tuple, position, batch.block());
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const size_t known_lines = record.lines.size();
    bool adjusted = false;
    if (lane > 0) {
      position = batch.position(warp, lane);
      adjusted = position[0] == 0;
      record.adjustments += adjusted;
      for (Accumulator& accumulator : accumulators)
        accumulator.step_to(position);
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!(parts[i].threads[warp] >> lane & 1)) continue;
      record.lanes |= 1u << lane;
      record.addresses[lane] = accumulators[i].value();
      touch(record, record.addresses[lane], bytes);
    }
    record.adjusted_lines += adjusted && record.lines.size() > known_lines;
  }
  return record;
}

bool AffineComparison::of(uint64_t a, uint64_t b) const {
  const __int128 first = number(low_bits(a, bits), *this), second = number(low_bits(b, bits), *this);
  return first < second ? less : first == second ? equal : greater;
}

WarpPredicate expand_comparison(const AffineComparison& comparison, const AffineTuple& a, const AffineTuple& b,
                                const AffineBatch& batch, uint32_t warp) {
  const uint32_t members = batch.members(warp);
  const auto last = static_cast<unsigned>(std::popcount(members)) - 1;
  if (a.is_block_scalar() && b.is_block_scalar()) {
    const ThreadPosition any = batch.position(warp, 0);
    return {comparison.of(a.at(any), b.at(any)) ? members : 0, PredicateCase::scalar};
  }
  const bool one_scalar = a.is_block_scalar() || b.is_block_scalar();
  const auto ends = one_scalar ? ends_of(a.is_block_scalar() ? b : a, comparison, batch, warp, last) : std::nullopt;
  if (ends) {
    const AffineComparison less{.less = true, .is_signed = comparison.is_signed, .bits = comparison.bits};
    const uint64_t first_a = a.at((*ends)[0]), first_b = b.at((*ends)[0]);
    const uint64_t last_a = a.at((*ends)[1]), last_b = b.at((*ends)[1]);
    if (less.of(first_a, first_b) && less.of(last_a, last_b))
      return {comparison.less ? members : 0, PredicateCase::ends};
    if (less.of(first_b, first_a) && less.of(last_b, last_a))
      return {comparison.greater ? members : 0, PredicateCase::ends};
  }
  uint32_t bits = 0;
  for (unsigned lane = 0; lane <= last; ++lane) {
    const ThreadPosition position = batch.position(warp, lane);
    bits |= static_cast<uint32_t>(comparison.of(a.at(position), b.at(position))) << lane;
  }
  return {bits, PredicateCase::lanes};
}

} // namespace ptxrewrite::emulator
