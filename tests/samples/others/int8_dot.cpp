// Products of byte matrices byte by byte; the requantised bytes from one float product, nearest even, clamped.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cmath>

REFERENCE(int8_dot) {
  const int m = data.value("m");
  const int n = data.value("n");
  const int k = data.value("k");
  const auto a = data.s8("a");
  const auto b = data.s8("b");
  const auto x = data.s8("x");
  const auto scales = data.f32("scales");
  const auto c = data.s32("c");
  const auto y = data.s32("y");
  const auto bytes = data.s8("bytes");

  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      int sum = 0;
      for (int i = 0; i < k; ++i) {
        sum += a[row * k + i] * b[column * k + i];
      }
      c[row * n + column] = sum;
      const float scaled = std::nearbyint(static_cast<float>(sum) * scales[column]);
      bytes[row * n + column] = static_cast<std::int8_t>(std::clamp(scaled, -128.0f, 127.0f));
    }
    for (int i = 0; i < k; ++i) {
      y[column] += b[column * k + i] * x[i];
    }
  }
}
