// LU decomposition without pivoting, in double: U with the diagonal, below it L, whose diagonal of ones is not stored.
#include "tests/samples/reference.h"

REFERENCE(lud) {
  const int64_t n = data.value("n");
  auto matrix = data.f32("matrix");
  std::vector<double> exact(matrix.begin(), matrix.end());
  for (int64_t pivot = 0; pivot < n; ++pivot)
    for (int64_t row = pivot + 1; row < n; ++row) {
      exact[row * n + pivot] /= exact[pivot * n + pivot];
      for (int64_t column = pivot + 1; column < n; ++column)
        exact[row * n + column] -= exact[row * n + pivot] * exact[pivot * n + column];
    }
  for (int64_t i = 0; i < n * n; ++i)
    matrix[i] = static_cast<float>(exact[i]);
  // The diagonal dominates each row, so float errors do not grow; the order of sums depends on the tiles.
  data.tolerate("matrix", {.relative = 1e-6, .absolute = 1e-6});
}
