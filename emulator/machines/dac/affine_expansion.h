// DAC's expansion units (dac-isca17 §4.2, §4.3): expand tuples to the addresses and predicates of a warp's lanes.
//
// Both use only the short computations of the paper: addresses by additions from lane to lane, with another step at the
// end of a row of the block; predicates by one comparison per block, two per warp, or one per lane.
#pragma once

#include "emulator/core/micro_op.h"
#include "emulator/machines/dac/affine_value.h"

#include <array>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

// 32 neighbouring words, halves or bytes of memory with a mask of accessed units: the format of a queue entry.
struct TouchedLine {
  uint64_t address = 0; // a multiple of 32 units
  uint32_t units = 0;
  bool operator==(const TouchedLine&) const = default;
};

struct WarpAddresses {
  uint32_t lanes = 0; // lanes that access memory
  std::array<uint64_t, warp_size> addresses{};
  unsigned unit = 4;              // bytes: 4, 2 or 1
  std::vector<TouchedLine> lines; // in the order in which lanes access them
  unsigned adjustments = 0;       // of the accumulated address, at steps of tid.y or tid.z
  unsigned adjusted_lines = 0;    // of them: those that start another line, in place of its addition
};

// Expands accesses of `bytes` bytes, for those lanes of the warp that are in one of the disjoint parts.
WarpAddresses expand_addresses(std::span<const AffineValue::Part> parts, unsigned bytes, const AffineBatch& batch,
                               uint32_t warp);

// An integer comparison, as the set of outcomes for which it is true.
struct AffineComparison {
  bool less = false, equal = false, greater = false;
  bool is_signed = false;
  unsigned bits = 32;
  bool of(uint64_t a, uint64_t b) const;
};

enum class PredicateCase : uint8_t {
  scalar, // the same in the whole block: one comparison per block
  ends,   // the warp's first and last lane have the same strict outcome: two comparisons
  lanes,
};

struct WarpPredicate {
  uint32_t bits = 0; // of all existing lanes
  PredicateCase how = PredicateCase::scalar;
};

WarpPredicate expand_comparison(const AffineComparison& comparison, const AffineTuple& a, const AffineTuple& b,
                                const AffineBatch& batch, uint32_t warp);

} // namespace ptxrewrite::emulator
