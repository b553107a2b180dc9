// s = A^T r and q = A p in one walk over A; each product is fused into its sum in rising order, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(bicg) {
  const int rows = data.value("rows");
  const int columns = data.value("columns");
  const auto a = data.f32("a");
  const auto p = data.f32("p");
  const auto r = data.f32("r");
  const auto q = data.f32("q");
  const auto s = data.f32("s");

  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      s[column] = std::fma(r[row], a[row * columns + column], s[column]);
      q[row] = std::fma(a[row * columns + column], p[column], q[row]);
    }
  }
}
