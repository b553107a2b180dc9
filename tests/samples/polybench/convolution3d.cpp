// The fifteen taps as a table of mask and offsets, summed in double precision: the exact result, to which float
// sums in any order and with any fusing are close.
#include "tests/samples/reference.h"

namespace {

struct Tap {
  double weight;
  int plane, row, column;
};

constexpr Tap taps[] = {{2, -1, -1, -1}, {4, 1, -1, -1}, {5, -1, -1, -1}, {7, 1, -1, -1}, {-8, -1, -1, -1},
                        {10, 1, -1, -1}, {-3, 0, -1, 0}, {6, 0, 0, 0},    {-9, 0, 1, 0},  {2, -1, -1, 1},
                        {4, 1, -1, 1},   {5, -1, 0, 1},  {7, 1, 0, 1},    {-8, -1, 1, 1}, {10, 1, 1, 1}};

} // namespace

REFERENCE(convolution3d) {
  const int depth = data.value("depth");
  const int rows = data.value("rows");
  const int columns = data.value("columns");
  const auto volume = data.f32("volume");
  const auto result = data.f32("result");

  const auto at = [&](int plane, int row, int column) { return (plane * rows + row) * columns + column; };
  for (int plane = 1; plane < depth - 1; ++plane) {
    for (int row = 1; row < rows - 1; ++row) {
      for (int column = 1; column < columns - 1; ++column) {
        double sum = 0;
        for (const Tap& tap : taps) {
          sum += tap.weight * volume[at(plane + tap.plane, row + tap.row, column + tap.column)];
        }
        result[at(plane, row, column)] = static_cast<float>(sum);
      }
    }
  }

  // Fifteen roundings of sums below 64; which products are fused is the compiler's choice.
  data.tolerate("result", {.absolute = 2e-5});
}
