// Diffusion of a column-major image of brightness 0 to 255, on an exponential scale; speckle is measured in every step.
#include "tests/samples/reference.h"
#include "tests/samples/srad.h"

using ptxrewrite::tests::DiffusionImage;

REFERENCE(srad_v1) {
  auto pixels = data.f32("image"), coefficients_out = data.f32("coefficients");
  DiffusionImage image{data.value("rows"), data.value("columns"), {}}, coefficients;
  auto place = [&](int64_t row, int64_t column) { return column * image.rows + row; };
  for (int64_t row = 0; row < image.rows; ++row)
    for (int64_t column = 0; column < image.columns; ++column)
      image.pixels.push_back(std::exp(pixels[place(row, column)] / 255.0));

  for (int64_t t = 0; t < data.value("iterations"); ++t) {
    double sum = 0, square_sum = 0;
    for (double pixel : image.pixels)
      sum += pixel, square_sum += pixel * pixel;
    const double mean = sum / image.pixels.size();
    const double speckle = (square_sum / image.pixels.size() - mean * mean) / (mean * mean);
    data.f32("speckle")[0] = static_cast<float>(speckle);
    coefficients = ptxrewrite::tests::diffuse(image, speckle, 0.5);
  }
  for (int64_t row = 0; row < image.rows; ++row)
    for (int64_t column = 0; column < image.columns; ++column) {
      pixels[place(row, column)] = static_cast<float>(std::log(image.at(row, column)) * 255);
      coefficients_out[place(row, column)] = static_cast<float>(coefficients.at(row, column));
    }
  // In float the variance is a difference of nearly equal numbers, and differences of neighbours are about 1/100 of
  // the pixels that they are computed from.
  data.tolerate("speckle", {.relative = 2e-5});
  data.tolerate("coefficients", {.relative = 5e-5});
  data.tolerate("image", {.relative = 2e-6, .absolute = 5e-4});
}
