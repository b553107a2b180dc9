// The transform of every 8x8 block from its definition, a sum of 64 products of cosines in double precision; the
// quantised coefficients and the image reconstructed from them are derived from it.
#include "tests/samples/reference.h"

#include <cmath>
#include <numbers>

namespace {

double basis(int frequency, int place) {
  const double norm = frequency == 0 ? std::sqrt(0.125) : 0.5;
  return norm * std::cos((2 * place + 1) * frequency * std::numbers::pi / 16);
}

} // namespace

REFERENCE(dct8x8) {
  const int width = data.value("width");
  const int height = data.value("height");
  const auto image = data.f32("image");
  const auto steps = data.f32("quantisation");
  const auto coefficients = data.f32("coefficients");
  const auto by_vectors = data.f32("coefficients_by_vectors");
  const auto quantised = data.f32("quantised");
  const auto restored = data.f32("restored");

  for (int top = 0; top < height; top += 8) {
    for (int left = 0; left < width; left += 8) {
      const auto at = [&](int y, int x) { return (top + y) * width + left + x; };
      for (int v = 0; v < 8; ++v) {
        for (int u = 0; u < 8; ++u) {
          double sum = 0;
          for (int y = 0; y < 8; ++y) {
            for (int x = 0; x < 8; ++x) {
              sum += basis(v, y) * basis(u, x) * (image[at(y, x)] - 128);
            }
          }
          coefficients[at(v, u)] = static_cast<float>(sum);
          by_vectors[at(v, u)] = static_cast<float>(sum);
          quantised[at(v, u)] = static_cast<float>(std::nearbyint(sum / steps[8 * v + u])) * steps[8 * v + u];
        }
      }
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) {
          double sum = 128;
          for (int v = 0; v < 8; ++v) {
            for (int u = 0; u < 8; ++u) {
              sum += basis(v, y) * basis(u, x) * quantised[at(v, u)];
            }
          }
          restored[at(y, x)] = static_cast<float>(sum);
        }
      }
    }
  }

  // Sixteen roundings of sums up to 1024 in single precision. Quantised coefficients are whole multiples: exact.
  for (const char* name : {"coefficients", "coefficients_by_vectors", "restored"}) {
    data.tolerate(name, {.absolute = 1e-3});
  }
}
