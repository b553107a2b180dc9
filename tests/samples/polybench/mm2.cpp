// T = alpha A B, then D = beta D + T C; each product is fused into its sum in rising order, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(mm2) {
  const int ni = data.value("ni");
  const int nj = data.value("nj");
  const int nk = data.value("nk");
  const int nl = data.value("nl");
  const float alpha = data.number("alpha");
  const float beta = data.number("beta");
  const auto a = data.f32("a");
  const auto b = data.f32("b");
  const auto c = data.f32("c");
  const auto d = data.f32("d");
  const auto t = data.f32("t");

  for (int i = 0; i < ni; ++i) {
    for (int j = 0; j < nj; ++j) {
      t[i * nj + j] = 0;
      for (int k = 0; k < nk; ++k) {
        t[i * nj + j] = std::fma(alpha * a[i * nk + k], b[k * nj + j], t[i * nj + j]);
      }
    }
    for (int l = 0; l < nl; ++l) {
      d[i * nl + l] *= beta;
      for (int j = 0; j < nj; ++j) {
        d[i * nl + l] = std::fma(t[i * nj + j], c[j * nl + l], d[i * nl + l]);
      }
    }
  }
}
