// One Jacobi step: the mean of the six neighbours inside, the old value on the boundary. The sum runs in x, y, z,
// lower before higher neighbour, which fixes every bit.
#include "tests/samples/reference.h"

REFERENCE(laplace3d) {
  const int nx = data.value("nx");
  const int ny = data.value("ny");
  const int nz = data.value("nz");
  const auto source = data.f32("source");
  const auto result = data.f32("result");

  const auto at = [&](int x, int y, int z) { return (z * ny + y) * nx + x; };
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        const bool inside = x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1;
        result[at(x, y, z)] = source[at(x, y, z)];
        if (inside) {
          const float sum = source[at(x - 1, y, z)] + source[at(x + 1, y, z)] + source[at(x, y - 1, z)] +
                            source[at(x, y + 1, z)] + source[at(x, y, z - 1)] + source[at(x, y, z + 1)];
          result[at(x, y, z)] = sum * (1.0f / 6.0f);
        }
      }
    }
  }
}
