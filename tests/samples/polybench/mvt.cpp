// x1 += A y1 and x2 += A^T y2; each product is fused into its sum in rising order, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(mvt) {
  const int n = data.value("n");
  const auto a = data.f32("a");
  const auto x1 = data.f32("x1");
  const auto x2 = data.f32("x2");
  const auto y1 = data.f32("y1");
  const auto y2 = data.f32("y2");

  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) {
      x1[row] = std::fma(a[row * n + column], y1[column], x1[row]);
      x2[column] = std::fma(a[row * n + column], y2[row], x2[column]);
    }
  }
}
