// y = alpha A x + beta B x; every bit of the two products with x is determined (fused sums in rising order), but their
// sum only up to a rounding.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(gesummv) {
  const int n = data.value("n");
  const float alpha = data.number("alpha");
  const float beta = data.number("beta");
  const auto a = data.f32("a");
  const auto b = data.f32("b");
  const auto x = data.f32("x");
  const auto product = data.f32("product");
  const auto y = data.f32("y");

  for (int row = 0; row < n; ++row) {
    float with_a = 0;
    float with_b = 0;
    for (int column = 0; column < n; ++column) {
      with_a = std::fma(a[row * n + column], x[column], with_a);
      with_b = std::fma(b[row * n + column], x[column], with_b);
    }
    product[row] = with_a;
    y[row] = alpha * with_a + beta * with_b;
  }

  // Which of the two products of the last line is fused is the compiler's choice.
  data.tolerate("y", {.absolute = 1e-5});
}
