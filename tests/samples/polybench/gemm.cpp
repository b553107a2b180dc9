// C = alpha A B + beta C; each product is fused into the sum, k rising, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(gemm) {
  const int ni = data.value("ni");
  const int nj = data.value("nj");
  const int nk = data.value("nk");
  const float alpha = data.number("alpha");
  const float beta = data.number("beta");
  const auto a = data.f32("a");
  const auto b = data.f32("b");
  const auto c = data.f32("c");

  for (int i = 0; i < ni; ++i) {
    for (int j = 0; j < nj; ++j) {
      float sum = beta * c[i * nj + j];
      for (int k = 0; k < nk; ++k) {
        sum = std::fma(alpha * a[i * nk + k], b[k * nj + j], sum);
      }
      c[i * nj + j] = sum;
    }
  }
}
