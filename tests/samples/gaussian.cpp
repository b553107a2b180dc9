// Elimination below the diagonal, column by column.
#include "tests/samples/reference.h"

REFERENCE(gaussian) {
  const int64_t n = data.value("n");
  auto matrix = data.f32("matrix"), factors = data.f32("factors"), right_side = data.f32("right_side");
  for (int64_t pivot = 0; pivot < n - 1; ++pivot)
    for (int64_t row = pivot + 1; row < n; ++row) {
      const float factor = matrix[row * n + pivot] / matrix[pivot * n + pivot];
      factors[row * n + pivot] = factor;
      for (int64_t column = pivot; column < n; ++column)
        matrix[row * n + column] = std::fma(-factor, matrix[pivot * n + column], matrix[row * n + column]);
      right_side[row] = std::fma(-factor, right_side[pivot], right_side[row]);
    }
}
