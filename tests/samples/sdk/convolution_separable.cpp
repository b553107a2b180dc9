// Convolution along the rows, then along the columns, with zeros around the image. The products are fused into the
// sum from the first tap to the last, which fixes every bit.
#include "tests/samples/reference.h"

#include <cmath>
#include <span>

namespace {

// `step` is the distance between pixels of a line of `length` pixels, and `place` is the pixel's position in the line.
float filtered(std::span<const float> image, std::span<const float> filter, int index, int place, int length,
               int step) {
  const int radius = static_cast<int>(filter.size() / 2);
  float sum = 0;
  for (int offset = -radius; offset <= radius; ++offset) {
    const bool inside = place + offset >= 0 && place + offset < length;
    sum = std::fma(filter[radius - offset], inside ? image[index + offset * step] : 0.0f, sum);
  }
  return sum;
}

} // namespace

REFERENCE(convolution_separable) {
  const int width = data.value("width");
  const int height = data.value("height");
  const auto filter = data.f32("filter");
  const auto image = data.f32("image");
  const auto rows_done = data.f32("rows_done");
  const auto result = data.f32("result");

  for (int index = 0; index < width * height; ++index) {
    rows_done[index] = filtered(image, filter, index, index % width, width, 1);
  }
  for (int index = 0; index < width * height; ++index) {
    result[index] = filtered(rows_done, filter, index, index / width, height, width);
  }
}
