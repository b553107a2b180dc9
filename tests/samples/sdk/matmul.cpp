// The product of two square matrices; each product is fused into its sum in rising order, which fixes every bit,
// whatever the tiles.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cmath>

REFERENCE(matmul) {
  const int width = data.value("width");
  const auto a = data.f32("a");
  const auto b = data.f32("b");
  const auto c = data.f32("c");

  for (int row = 0; row < width; ++row) {
    for (int column = 0; column < width; ++column) {
      float sum = 0;
      for (int k = 0; k < width; ++k) {
        sum = std::fma(a[row * width + k], b[k * width + column], sum);
      }
      c[row * width + column] = sum;
    }
  }
  std::copy(c.begin(), c.end(), data.f32("c_naive").begin());
  std::copy(c.begin(), c.end(), data.f32("c32").begin());
}
