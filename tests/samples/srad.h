// One step of speckle reducing anisotropic diffusion, for both samples that use it, in double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ptxrewrite::tests {

struct DiffusionImage {
  int64_t rows = 0, columns = 0;
  std::vector<double> pixels; // row by row

  double& at(int64_t row, int64_t column) { return pixels[row * columns + column]; }
  // Beyond the border, a pixel is its own neighbour.
  double clamped(int64_t row, int64_t column) const {
    return pixels[std::clamp<int64_t>(row, 0, rows - 1) * columns + std::clamp<int64_t>(column, 0, columns - 1)];
  }
};

// Computes diffusion coefficients from the local variation relative to the speckle; then changes each pixel by a
// quarter of `rate` times the inflow: its own coefficient times the differences to north and west, and the other two
// neighbours' coefficients times those to south and east. Returns the coefficients.
inline DiffusionImage diffuse(DiffusionImage& image, double speckle, double rate) {
  DiffusionImage coefficients = image;
  for (int64_t row = 0; row < image.rows; ++row)
    for (int64_t column = 0; column < image.columns; ++column) {
      const double here = image.at(row, column);
      double squares = 0, sum = 0;
      for (double neighbour : {image.clamped(row - 1, column), image.clamped(row + 1, column),
                               image.clamped(row, column - 1), image.clamped(row, column + 1)}) {
        squares += (neighbour - here) * (neighbour - here);
        sum += neighbour - here;
      }
      const double gradient = squares / (here * here), laplacian = sum / here;
      const double slope = 1 + laplacian / 4;
      const double variation = (gradient / 2 - laplacian * laplacian / 16) / (slope * slope);
      const double excess = (variation - speckle) / (speckle * (1 + speckle));
      coefficients.at(row, column) = std::clamp(1 / (1 + excess), 0.0, 1.0);
    }
  const DiffusionImage before = image;
  for (int64_t row = 0; row < image.rows; ++row)
    for (int64_t column = 0; column < image.columns; ++column) {
      const double here = before.clamped(row, column), own = coefficients.at(row, column);
      const double flow = own * (before.clamped(row - 1, column) - here) +
                          own * (before.clamped(row, column - 1) - here) +
                          coefficients.clamped(row + 1, column) * (before.clamped(row + 1, column) - here) +
                          coefficients.clamped(row, column + 1) * (before.clamped(row, column + 1) - here);
      image.at(row, column) += rate / 4 * flow;
    }
  return coefficients;
}

} // namespace ptxrewrite::tests
