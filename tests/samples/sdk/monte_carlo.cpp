// Philox 4x32-10 in 64-bit arithmetic (checked against its authors' known answer), Box-Muller and the sums over the
// paths in double precision.
#include "tests/samples/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>

namespace {

using Counter = std::array<std::uint32_t, 4>;

Counter philox(Counter counter, std::uint32_t seed) {
  std::uint32_t key[2] = {seed, 0};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xd2511f53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9e3779b9; // golden ratio
    key[1] += 0xbb67ae85; // square root of three
  }
  return counter;
}

} // namespace

REFERENCE(monte_carlo) {
  if (philox({0, 0, 0, 0}, 0) != Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}) {
    throw std::logic_error("the reference Philox does not give its known answer");
  }

  const std::uint32_t seed = data.value("seed");
  const auto options = data.f32("options");
  const auto normals = data.f32("normals");
  const auto results = data.f32("results");

  for (std::size_t i = 0; i < normals.size(); i += 2) {
    const Counter words = philox({static_cast<std::uint32_t>(i / 4), 0, 0, 0}, seed);
    const double uniform = (words[i % 4] + 0.5) / 0x1p32;
    const double turn = words[i % 4 + 1] / 0x1p32;
    const double radius = std::sqrt(-2 * std::log(uniform));
    normals[i] = static_cast<float>(radius * std::sin(2 * std::numbers::pi * turn));
    normals[i + 1] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * turn));
  }

  const double paths = normals.size();
  for (std::size_t option = 0; option < results.size() / 2; ++option) {
    const auto terms = options.subspan(4 * option, 4);
    double sum = 0;
    double squares = 0;
    for (const double normal : normals) {
      const double payoff = std::max(0.0, terms[0] * std::exp(terms[2] + terms[3] * normal) - terms[1]);
      sum += payoff;
      squares += payoff * payoff;
    }
    const double variance = (squares - sum * sum / paths) / (paths - 1);
    results[2 * option] = static_cast<float>(sum / paths);
    results[2 * option + 1] = static_cast<float>(1.96 * std::sqrt(variance / paths));
  }

  // Approximate logarithms and exponentials, and sums in single precision.
  data.tolerate("normals", {.absolute = 1e-5});
  data.tolerate("results", {.relative = 2e-4, .absolute = 1e-4});
}
