// Diffusion of a row-major image with the speckle from the launch file.
#include "tests/samples/reference.h"
#include "tests/samples/srad.h"

using ptxrewrite::tests::DiffusionImage;

REFERENCE(srad_v2) {
  auto pixels = data.f32("image"), coefficients_out = data.f32("coefficients");
  DiffusionImage image{data.value("rows"), data.value("columns"), {pixels.begin(), pixels.end()}}, coefficients;
  for (int64_t t = 0; t < data.value("iterations"); ++t)
    coefficients = ptxrewrite::tests::diffuse(image, 0.05 / (1.0 + t), 0.5);
  for (size_t k = 0; k < pixels.size(); ++k) {
    pixels[k] = static_cast<float>(image.pixels[k]);
    coefficients_out[k] = static_cast<float>(coefficients.pixels[k]);
  }
  // Some twenty float operations per pixel; a coefficient is a quotient of differences.
  data.tolerate("coefficients", {.relative = 5e-6, .absolute = 5e-7});
  data.tolerate("image", {.relative = 5e-7});
}
