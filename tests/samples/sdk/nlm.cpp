// Denoising by weighted means, in double precision: weights from the similarity of pixels, of the squares around them,
// and of the squares around the middle of the pixel's 8x8 block.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

namespace {

struct Image {
  std::span<const std::uint8_t> bytes;
  int width, height;

  double channel(int x, int y, int which) const {
    x = std::clamp(x, 0, width - 1);
    y = std::clamp(y, 0, height - 1);
    return bytes[4 * (y * width + x) + which] / 255.0;
  }
  double distance(int x0, int y0, int x1, int y1) const {
    double sum = 0;
    for (int which = 0; which < 3; ++which) {
      sum += std::pow(channel(x0, y0, which) - channel(x1, y1, which), 2);
    }
    return sum;
  }
  // Distance between the squares around two pixels.
  double patch_distance(int x0, int y0, int x1, int y1, int radius) const {
    double sum = 0;
    for (int dy = -radius; dy <= radius; ++dy) {
      for (int dx = -radius; dx <= radius; ++dx) {
        sum += distance(x0 + dx, y0 + dy, x1 + dx, y1 + dy);
      }
    }
    return sum;
  }
};

// `weigh` returns the distance, already scaled by the noise, of pixel (x, y) and its neighbour (x + dx, y + dy).
// If most weights are above `bar`, the surroundings are smooth, and less of the noisy pixel is kept.
using Weigh = std::function<double(int x, int y, int dx, int dy)>;

void denoise(const Image& image, std::span<float> result, int radius, double lerp, double bar, const Weigh& weigh) {
  const double area = (2 * radius + 1) * (2 * radius + 1);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      double sum[3] = {};
      double weights = 0;
      double alike = 0;
      for (int dy = -radius; dy <= radius; ++dy) {
        for (int dx = -radius; dx <= radius; ++dx) {
          const double weight = std::exp(-(weigh(x, y, dx, dy) + (dx * dx + dy * dy) / area));
          weights += weight;
          alike += weight > bar ? 1 : 0;
          for (int which = 0; which < 3; ++which) {
            sum[which] += weight * image.channel(x + dx, y + dy, which);
          }
        }
      }
      const double noisy_part = alike / area > 0.66 ? lerp : 1 - lerp;
      for (int which = 0; which < 3; ++which) {
        result[4 * (y * image.width + x) + which] =
            static_cast<float>(std::lerp(sum[which] / weights, image.channel(x, y, which), noisy_part));
      }
    }
  }
}

} // namespace

REFERENCE(nlm) {
  const Image image{data.u8("image"), static_cast<int>(data.value("width")), static_cast<int>(data.value("height"))};
  const int radius = data.value("radius");
  const int patch = data.value("patch_radius");
  const double lerp = data.number("lerp");
  const double neighbour_noise = data.number("neighbour_noise");
  const double patch_noise = data.number("patch_noise");

  denoise(image, data.f32("by_neighbours"), radius, lerp, 0.02,
          [&](int x, int y, int dx, int dy) { return neighbour_noise * image.distance(x, y, x + dx, y + dy); });
  denoise(image, data.f32("by_patches"), radius, lerp, 0.1, [&](int x, int y, int dx, int dy) {
    return patch_noise * image.patch_distance(x, y, x + dx, y + dy, patch);
  });
  denoise(image, data.f32("by_block_patches"), radius, lerp, 0.1, [&](int x, int y, int dx, int dy) {
    const int middle_x = x / 8 * 8 + 4;
    const int middle_y = y / 8 * 8 + 4;
    return patch_noise * image.patch_distance(middle_x, middle_y, middle_x + dx, middle_y + dy, patch);
  });

  // Approximate exponentials and sums in single precision, of colours up to 1.
  for (const char* name : {"by_neighbours", "by_patches", "by_block_patches"}) {
    data.tolerate(name, {.absolute = 5e-6});
  }
}
