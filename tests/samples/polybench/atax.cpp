// y = A^T (A x); each product is fused into its sum in rising order, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(atax) {
  const int rows = data.value("rows");
  const int columns = data.value("columns");
  const auto a = data.f32("a");
  const auto x = data.f32("x");
  const auto product = data.f32("product");
  const auto y = data.f32("y");

  for (int row = 0; row < rows; ++row) {
    product[row] = 0;
    for (int column = 0; column < columns; ++column) {
      product[row] = std::fma(a[row * columns + column], x[column], product[row]);
    }
    for (int column = 0; column < columns; ++column) {
      y[column] = std::fma(a[row * columns + column], product[row], y[column]);
    }
  }
}
