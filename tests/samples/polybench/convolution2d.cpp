// Nine-point convolution of the inside of an image by its definition, summed in double precision: the exact result,
// to which float sums in any order and with any fusing are close.
#include "tests/samples/reference.h"

REFERENCE(convolution2d) {
  const int rows = data.value("rows");
  const int columns = data.value("columns");
  const auto image = data.f32("image");
  const auto result = data.f32("result");

  const double mask[3][3] = {{0.2, 0.5, -0.8}, {-0.3, 0.6, -0.9}, {0.4, 0.7, 0.1}};
  for (int row = 1; row < rows - 1; ++row) {
    for (int column = 1; column < columns - 1; ++column) {
      double sum = 0;
      for (int down = 0; down < 3; ++down) {
        for (int across = 0; across < 3; ++across) {
          sum += mask[down][across] * image[(row + down - 1) * columns + column + across - 1];
        }
      }
      result[row * columns + column] = static_cast<float>(sum);
    }
  }

  // Nine roundings of sums below 2, in an order and with fusings that are the compiler's choice.
  data.tolerate("result", {.absolute = 1e-6});
}
