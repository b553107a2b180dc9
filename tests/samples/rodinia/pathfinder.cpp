// Minimal sums from the first row of a grid downwards, each cell from the three above it.
#include "tests/samples/reference.h"

#include <algorithm>

REFERENCE(pathfinder) {
  const int64_t columns = data.value("columns"), rows = data.value("halo");
  auto wall = data.s32("wall"), a = data.s32("sums_a"), b = data.s32("sums_b");
  std::vector<int32_t> sums(a.begin(), a.end());
  for (int64_t launch = 0; launch < data.value("launches"); ++launch) {
    for (int64_t row = launch * rows; row < (launch + 1) * rows; ++row) {
      const std::vector<int32_t> above = sums;
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t left = std::max<int64_t>(column - 1, 0), right = std::min(column + 1, columns - 1);
        sums[column] = wall[row * columns + column] + std::min({above[left], above[column], above[right]});
      }
    }
    std::ranges::copy(sums, launch % 2 == 0 ? b.begin() : a.begin());
  }
}
