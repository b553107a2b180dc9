// The reversible 5/3 wavelet by its lifting steps on whole lines, first along x, then along y; two levels.
#include "tests/samples/reference.h"

#include <algorithm>

namespace {

struct Plane {
  int64_t width, height;
  std::vector<int32_t> values;
};

// Transforms one line in place: odd elements become their differences from the mean of the neighbours, then a share of
// these is added to the even ones. The line is extended by its mirror image.
void lift(std::span<int32_t*> line) {
  const int64_t size = static_cast<int64_t>(line.size());
  auto at = [&](int64_t k) -> int32_t& { return *line[k < 0 ? -k : k >= size ? 2 * (size - 1) - k : k]; };
  for (int64_t k = 1; k < size; k += 2)
    at(k) -= (at(k - 1) + at(k + 1)) >> 1;
  for (int64_t k = 0; k < size; k += 2)
    at(k) += (at(k - 1) + at(k + 1) + 2) >> 2;
}

void transform(Plane& plane) {
  std::vector<int32_t*> line;
  for (int64_t row = 0; row < plane.height; ++row) {
    line.clear();
    for (int64_t column = 0; column < plane.width; ++column)
      line.push_back(&plane.values[row * plane.width + column]);
    lift(line);
  }
  for (int64_t column = 0; column < plane.width; ++column) {
    line.clear();
    for (int64_t row = 0; row < plane.height; ++row)
      line.push_back(&plane.values[row * plane.width + column]);
    lift(line);
  }
}

// Low-low, high-low (odd columns), low-high (odd rows), high-high.
std::vector<int32_t> bands_of(const Plane& plane) {
  std::vector<int32_t> bands;
  for (int first_row : {0, 1})
    for (int first_column : {0, 1})
      for (int64_t row = first_row; row < plane.height; row += 2)
        for (int64_t column = first_column; column < plane.width; column += 2)
          bands.push_back(plane.values[row * plane.width + column]);
  return bands;
}

} // namespace

REFERENCE(dwt2d) {
  auto image = data.u8("image");
  auto bands = data.s32("bands"), second_bands = data.s32("second_bands");
  const int64_t width = data.value("width"), height = data.value("height");
  const int64_t low_width = data.value("low_width"), low_height = data.value("low_height");
  for (int colour = 0; colour < 3; ++colour) {
    Plane plane{width, height, {}};
    for (int64_t pixel = 0; pixel < width * height; ++pixel)
      plane.values.push_back(image[3 * pixel + colour] - 128);
    transform(plane);
    const std::vector<int32_t> first = bands_of(plane);
    std::ranges::copy(first, bands.begin() + colour * width * height);

    Plane low{low_width, low_height, {first.begin(), first.begin() + low_width * low_height}};
    transform(low);
    std::ranges::copy(bands_of(low), second_bands.begin() + colour * low_width * low_height);
  }
}
