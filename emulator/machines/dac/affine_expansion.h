// DAC's expansion units (dac-isca17 §4.2, §4.3): from tuples to the addresses and predicates of a warp's lanes.
//
// Both take the short ways of the paper and nothing else: addresses by adding from lane to lane, with another step
// where a row of the block ends; predicates by one comparison for a block, two for a warp, or one for each lane.
#pragma once

#include "emulator/core/micro_op.h"
#include "emulator/machines/dac/affine_value.h"

#include <array>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

// 32 neighbouring words, halves or bytes of memory, and which of them are accessed: what a queue entry keeps.
struct TouchedLine {
  uint64_t address = 0; // a multiple of 32 units
  uint32_t units = 0;
  bool operator==(const TouchedLine&) const = default;
};

struct WarpAddresses {
  uint32_t lanes = 0; // that access memory
  std::array<uint64_t, warp_size> addresses{};
  unsigned unit = 4;              // bytes: 4, 2 or 1
  std::vector<TouchedLine> lines; // in the order in which lanes come to them
  unsigned adjustments = 0;       // of the accumulated address, where tid.y or tid.z steps
  unsigned adjusted_lines = 0;    // of them: those that lead to a further line, in the place of its addition
};

// Of accesses of `bytes` bytes, for those lanes of the warp that are in a part. The parts are disjoint.
WarpAddresses expand_addresses(std::span<const AffineValue::Part> parts, unsigned bytes, const AffineBatch& batch,
                               uint32_t warp);

// Integers, for which of the outcomes it holds.
struct AffineComparison {
  bool less = false, equal = false, greater = false;
  bool is_signed = false;
  unsigned bits = 32;
  bool of(uint64_t a, uint64_t b) const;
};

enum class PredicateCase : uint8_t {
  scalar, // the same in the whole block: one comparison for it
  ends,   // the warp's first and last lane are strictly on the same side: two comparisons
  lanes,
};

struct WarpPredicate {
  uint32_t bits = 0; // of all lanes that exist
  PredicateCase how = PredicateCase::scalar;
};

WarpPredicate expand_comparison(const AffineComparison& comparison, const AffineTuple& a, const AffineTuple& b,
                                const AffineBatch& batch, uint32_t warp);

} // namespace ptxrewrite::emulator
