// For each voxel the Fourier sum over all samples, in double.
#include "tests/samples/reference.h"

#include <numbers>

REFERENCE(mri_q) {
  struct Sample {
    float x, y, z, magnitude;
  };
  auto phi_real = data.f32("phi_real"), phi_imaginary = data.f32("phi_imaginary"), magnitudes = data.f32("magnitudes");
  for (size_t k = 0; k < magnitudes.size(); ++k)
    magnitudes[k] = static_cast<float>(double{phi_real[k]} * phi_real[k] + double{phi_imaginary[k]} * phi_imaginary[k]);

  auto x = data.f32("x"), y = data.f32("y"), z = data.f32("z"), real = data.f32("real");
  auto imaginary = data.f32("imaginary");
  const auto samples = data.as<Sample>("samples");
  for (size_t voxel = 0; voxel < x.size(); ++voxel) {
    double real_sum = 0, imaginary_sum = 0;
    for (const Sample& k : samples) {
      const double angle =
          2 * std::numbers::pi * (double{k.x} * x[voxel] + double{k.y} * y[voxel] + double{k.z} * z[voxel]);
      real_sum += k.magnitude * std::cos(angle);
      imaginary_sum += k.magnitude * std::sin(angle);
    }
    real[voxel] = static_cast<float>(real_sum);
    imaginary[voxel] = static_cast<float>(imaginary_sum);
  }
  data.tolerate("magnitudes", {.relative = 1.5e-7});
  // Angles reach 75, where a float has an error of 4e-6; some twenty terms of either sign.
  data.tolerate("real", {.absolute = 4e-5});
  data.tolerate("imaginary", {.absolute = 4e-5});
}
