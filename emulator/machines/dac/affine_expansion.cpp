#include "emulator/machines/dac/affine_expansion.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// Steps from one thread of a block to the next.
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
  // The block's starting address, and where the warp begins in it.
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
  // The address is anything, and its end may be beyond the last address there is: units are counted, not compared.
  const uint64_t first = address / record.unit, count = (address % record.unit + bytes - 1) / record.unit + 1;
  for (uint64_t unit = first; unit - first < count; ++unit) {
    const uint64_t line = unit * record.unit / line_bytes * line_bytes;
    auto found = std::ranges::find(record.lines, line, &TouchedLine::address);
    if (found == record.lines.end()) found = record.lines.insert(found, {line, 0});
    found->units |= 1u << (unit % warp_size);
  }
}

// Of the type's range, as the number that the bits stand for.
__int128 number(uint64_t value, const AffineComparison& comparison) {
  return comparison.is_signed ? __int128(static_cast<int64_t>(sign_extended(value, comparison.bits))) : __int128(value);
}

// Does the tuple, from the warp's first lane to its last, change by the same step without wrapping?
bool is_straight(const AffineTuple& tuple, const AffineComparison& comparison, const AffineBatch& batch, uint32_t warp,
                 unsigned last) {
  if (tuple.modulo) return false;
  const ThreadPosition first_at = batch.position(warp, 0), last_at = batch.position(warp, last);
  if (first_at[1] != last_at[1] || first_at[2] != last_at[2]) return false;
  const auto step = static_cast<int64_t>(sign_extended(tuple.offsets[0], tuple.bits));
  return number(tuple.at(first_at), comparison) + __int128(step) * last == number(tuple.at(last_at), comparison);
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
  const ThreadPosition first_at = batch.position(warp, 0), last_at = batch.position(warp, last);
  const uint64_t first_a = a.at(first_at), first_b = b.at(first_at);
  if (a.is_block_scalar() && b.is_block_scalar())
    return {comparison.of(first_a, first_b) ? members : 0, PredicateCase::scalar};
  const bool one_scalar = a.is_block_scalar() || b.is_block_scalar();
  if (one_scalar && is_straight(a.is_block_scalar() ? b : a, comparison, batch, warp, last)) {
    const AffineComparison less{.less = true, .is_signed = comparison.is_signed, .bits = comparison.bits};
    const uint64_t last_a = a.at(last_at), last_b = b.at(last_at);
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
