// Seven points in three dimensions, in double; the border does not change.
#include "tests/samples/reference.h"

#include <algorithm>

REFERENCE(stencil) {
  constexpr double middle_weight = 1.0 / 6, end_weight = 1.0 / 36;
  const int64_t nx = data.value("nx"), ny = data.value("ny"), nz = data.value("nz");
  auto a = data.f32("a"), b = data.f32("b");
  std::vector<double> now(a.begin(), a.end());
  for (int64_t t = 0; t < data.value("steps"); ++t) {
    const std::vector<double> before = now;
    for (int64_t z = 1; z < nz - 1; ++z)
      for (int64_t y = 1; y < ny - 1; ++y)
        for (int64_t x = 1; x < nx - 1; ++x) {
          const int64_t k = (z * ny + y) * nx + x;
          const double ends = before[k - 1] + before[k + 1] + before[k - nx] + before[k + nx] + before[k - nx * ny] +
                              before[k + nx * ny];
          now[k] = end_weight * ends - middle_weight * before[k];
        }
    std::ranges::copy(now, t % 2 == 0 ? b.begin() : a.begin());
  }
  // Sums of six numbers below 1 in float.
  data.tolerate("a", {.absolute = 1e-7});
  data.tolerate("b", {.absolute = 1e-7});
}
