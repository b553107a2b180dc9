// Alignment of the lines of two listings.
#pragma once

#include "evaluate/common/listing.h"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace ptxrewrite::evaluate {

enum class LineStatus : uint8_t { kept, changed, removed, inserted };

// One row of a difference: a line of the left listing, of the right one, or a pair of lines.
struct AlignedLine {
  static constexpr uint32_t none = UINT32_MAX;
  LineStatus status = LineStatus::kept;
  uint32_t left = none;
  uint32_t right = none;
  bool moved = false; // removed or inserted here, but the same source instruction occurs elsewhere on the other side
};

struct DifferenceCounts { // of instructions
  size_t left = 0, right = 0;
  size_t kept = 0, changed = 0, removed = 0, inserted = 0;
  size_t moved = 0;    // included in removed (and in inserted)
  size_t sections = 0; // in `right`: within sections of a hardware form
};

enum class Alignment {
  provenance, // the right listing was derived from the left one
  text,       // two unrelated files
};

std::vector<AlignedLine> align(std::span<const ListingLine> left, std::span<const ListingLine> right, Alignment how);

DifferenceCounts count(std::span<const AlignedLine> rows, std::span<const ListingLine> left,
                       std::span<const ListingLine> right);

// Increasing pairs (index in a, index in b) of equal keys: a common subsequence. It is the longest one unless the
// sequences are long and few keys are unique; then it takes only O(n log n).
using Matches = std::vector<std::pair<uint32_t, uint32_t>>;
Matches common_subsequence(std::span<const uint32_t> a, std::span<const uint32_t> b);

} // namespace ptxrewrite::evaluate
