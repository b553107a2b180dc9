// The Mersenne Twister as a recurrence over a whole sequence of words, without a ring: word k + 19 follows from words
// k, k + 1 and k + 9. Uniform numbers are exact; normal ones follow in double precision.
#include "tests/samples/reference.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

REFERENCE(mersenne_twister) {
  struct Parameters {
    std::uint32_t matrix, mask_b, mask_c, seed;
  };
  const auto parameters = data.as<Parameters>("parameters");
  const int per_twister = data.value("per_twister");
  const auto uniforms = data.f32("uniforms");
  const auto normals = data.f32("normals");
  const std::size_t twisters = parameters.size();

  for (std::size_t twister = 0; twister < twisters; ++twister) {
    const auto [matrix, mask_b, mask_c, seed] = parameters[twister];
    std::vector<std::uint32_t> words(19 + per_twister);
    words[0] = seed;
    for (std::uint32_t i = 1; i < 19; ++i) {
      words[i] = 1812433253u * (words[i - 1] ^ (words[i - 1] >> 30)) + i;
    }
    for (int k = 0; k < per_twister; ++k) {
      const std::uint32_t joined = (words[k] & ~1u) | (words[k + 1] & 1u);
      words[k + 19] = words[k + 9] ^ (joined >> 1) ^ ((joined & 1u) != 0 ? matrix : 0);

      std::uint32_t tempered = words[k + 19];
      tempered ^= tempered >> 12;
      tempered ^= (tempered << 7) & mask_b;
      tempered ^= (tempered << 15) & mask_c;
      tempered ^= tempered >> 18;
      uniforms[k * twisters + twister] = (static_cast<float>(tempered) + 1.0f) * 0x1p-32f;
    }
    for (int k = 0; k < per_twister; k += 2) {
      const double radius = std::sqrt(-2 * std::log(double{uniforms[k * twisters + twister]}));
      const double angle = 2 * std::numbers::pi * uniforms[(k + 1) * twisters + twister];
      normals[k * twisters + twister] = static_cast<float>(radius * std::cos(angle));
      normals[(k + 1) * twisters + twister] = static_cast<float>(radius * std::sin(angle));
    }
  }

  // Logarithm, root and an angle that is rounded before its sine is taken.
  data.tolerate("normals", {.absolute = 5e-6});
}
