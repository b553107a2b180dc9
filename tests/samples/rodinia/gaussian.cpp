// Elimination below the diagonal, column by column, in double.
#include "tests/samples/reference.h"

REFERENCE(gaussian) {
  const int64_t n = data.value("n");
  auto matrix = data.f32("matrix"), factors = data.f32("factors"), right_side = data.f32("right_side");
  std::vector<double> rows(matrix.begin(), matrix.end()), right(right_side.begin(), right_side.end());
  for (int64_t pivot = 0; pivot < n - 1; ++pivot)
    for (int64_t row = pivot + 1; row < n; ++row) {
      const double factor = rows[row * n + pivot] / rows[pivot * n + pivot];
      factors[row * n + pivot] = static_cast<float>(factor);
      for (int64_t column = pivot; column < n; ++column)
        rows[row * n + column] -= factor * rows[pivot * n + column];
      right[row] -= factor * right[pivot];
    }
  for (int64_t i = 0; i < n * n; ++i)
    matrix[i] = static_cast<float>(rows[i]);
  for (int64_t i = 0; i < n; ++i)
    right_side[i] = static_cast<float>(right[i]);
  // The diagonal dominates each row, so float errors do not grow. Eliminated elements are zero or close to it.
  data.tolerate("matrix", {.relative = 2e-6, .absolute = 2e-6});
  data.tolerate("factors", {.relative = 1e-6, .absolute = 1e-7});
  data.tolerate("right_side", {.relative = 1e-6, .absolute = 1e-6});
}
