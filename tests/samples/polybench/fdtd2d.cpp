// Time steps of the two-dimensional Maxwell equations: ey and ex from the differences of hz, then hz from their curl.
// The scaled difference is fused into the field, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(fdtd2d) {
  const int nx = data.value("nx");
  const int ny = data.value("ny");
  const int steps = data.value("steps");
  const auto source = data.f32("source");
  const auto ex = data.f32("ex");
  const auto ey = data.f32("ey");
  const auto hz = data.f32("hz");

  const auto at = [&](int i, int j) { return i * ny + j; };
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < nx; ++i) {
      for (int j = 0; j < ny; ++j) {
        ey[at(i, j)] = i == 0 ? source[step] : std::fma(-0.5f, hz[at(i, j)] - hz[at(i - 1, j)], ey[at(i, j)]);
        if (j > 0) {
          ex[at(i, j)] = std::fma(-0.5f, hz[at(i, j)] - hz[at(i, j - 1)], ex[at(i, j)]);
        }
      }
    }
    for (int i = 0; i < nx - 1; ++i) {
      for (int j = 0; j < ny - 1; ++j) {
        const float curl = ex[at(i, j + 1)] - ex[at(i, j)] + ey[at(i + 1, j)] - ey[at(i, j)];
        hz[at(i, j)] = std::fma(-0.7f, curl, hz[at(i, j)]);
      }
    }
  }
}
