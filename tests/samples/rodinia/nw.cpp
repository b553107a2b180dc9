// The best score of an alignment up to each pair of letters, computed by rows.
#include "tests/samples/reference.h"

#include <algorithm>

REFERENCE(nw) {
  const int64_t columns = data.value("columns");
  const int32_t penalty = static_cast<int32_t>(data.value("penalty"));
  auto reference = data.s32("reference"), scores = data.s32("scores");
  for (int64_t row = 1; row < columns; ++row)
    for (int64_t column = 1; column < columns; ++column) {
      const int64_t here = row * columns + column;
      const int32_t both = scores[here - columns - 1] + reference[here];
      scores[here] = std::max({both, scores[here - 1] - penalty, scores[here - columns] - penalty});
    }
}
