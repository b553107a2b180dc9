// C = alpha * A * B + beta * C, column-major, B transposed.
#include "tests/samples/reference.h"

REFERENCE(sgemm) {
  constexpr double alpha = 1.5, beta = 0.25;
  const int64_t m = data.value("m"), n = data.value("n"), depth = data.value("k");
  auto a = data.f32("a"), b = data.f32("b"), c = data.f32("c");
  for (int64_t column = 0; column < n; ++column)
    for (int64_t row = 0; row < m; ++row) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum = std::fma(a[k * m + row], b[k * n + column], sum);
      c[column * m + row] = static_cast<float>(alpha * sum + beta * c[column * m + row]);
    }
  // The sum is exact; in the last step one product is rounded separately.
  data.tolerate("c", {.relative = 1.2e-7, .absolute = 2e-6});
}
