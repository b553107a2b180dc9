// E = A B, F = C D, G = E F; each product is fused into its sum in rising order, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>
#include <span>

namespace {

// The product of a rows x inner and an inner x columns matrix.
void multiply(std::span<const float> left, std::span<const float> right, std::span<float> product, int rows, int inner,
              int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = 0;
      for (int k = 0; k < inner; ++k) {
        sum = std::fma(left[row * inner + k], right[k * columns + column], sum);
      }
      product[row * columns + column] = sum;
    }
  }
}

} // namespace

REFERENCE(mm3) {
  const int ni = data.value("ni");
  const int nj = data.value("nj");
  const int nl = data.value("nl");
  multiply(data.f32("a"), data.f32("b"), data.f32("e"), ni, data.value("nk"), nj);
  multiply(data.f32("c"), data.f32("d"), data.f32("f"), nj, data.value("nm"), nl);
  multiply(data.f32("e"), data.f32("f"), data.f32("g"), ni, nj, nl);
}
