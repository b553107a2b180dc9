// sin.approx and cos.approx of 32 lanes by AVX-512: the bits of the functions of one lane, which are held against MPFR
// (approximate_semantics_test).
#include "emulator/semantics/wide_sine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#if defined(PTXREWRITE_WIDE_SINE)

namespace {

using namespace ptxrewrite::emulator::semantics;

constexpr unsigned lanes = 32;

struct Comparison {
  unsigned different = 0;
  unsigned known = 0; // warps that the vectors computed
};

template <Wave wave, bool flush> void compare(const float (&angles)[lanes], Comparison& comparison) {
  float results[lanes];
  if (!wide_wave<wave, flush>(angles, results)) return;
  ++comparison.known;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const float single = wave == Wave::sine ? sin_approx<flush>(angles[lane]) : cos_approx<flush>(angles[lane]);
    comparison.different += to_bits(single) != to_bits(results[lane]);
  }
}

// Compares warps whose angles are `next()`.
template <class Next> Comparison compare_warps(unsigned warps, Next&& next) {
  Comparison comparison;
  for (unsigned i = 0; i < warps; ++i) {
    float angles[lanes];
    for (float& angle : angles)
      angle = next();
    compare<Wave::sine, false>(angles, comparison);
    compare<Wave::sine, true>(angles, comparison);
    compare<Wave::cosine, false>(angles, comparison);
    compare<Wave::cosine, true>(angles, comparison);
  }
  return comparison;
}

} // namespace

TEST_CASE("waves of a warp: angles of a few turns have the bits of single lanes") {
  if (!host_has_avx512()) return;
  std::mt19937 random(7);
  constexpr unsigned warps = 20000;
  for (float largest : {1e-30f, 1e-3f, 3.2f, 100.0f, 1e4f}) {
    CAPTURE(largest);
    std::uniform_real_distribution<float> angle(-largest, largest);
    const Comparison comparison = compare_warps(warps, [&] { return angle(random); });
    CHECK(comparison.different == 0);
    CHECK(comparison.known > 4 * warps * 9 / 10);
  }
}

TEST_CASE("waves of a warp: angles next to multiples of a quarter turn, where sums cancel") {
  if (!host_has_avx512()) return;
  std::mt19937 random(11);
  std::uniform_int_distribution<int> quarter(-2000, 2000), step(-3, 3);
  const Comparison comparison = compare_warps(20000, [&] {
    const auto nearest = static_cast<float>(quarter(random) * std::acos(0.0));
    return from_bits<float>(to_bits(nearest) + static_cast<uint32_t>(step(random)));
  });
  CHECK(comparison.different == 0);
  CHECK(comparison.known > 1000);
}

TEST_CASE("waves of a warp: numbers of every exponent; a warp with infinities, NaN or many turns is left") {
  if (!host_has_avx512()) return;
  std::mt19937 random(13);
  const Comparison comparison =
      compare_warps(20000, [&] { return from_bits<float>(random() % 0x4e800000u | random() << 31); });
  CHECK(comparison.different == 0);
  CHECK(comparison.known > 1000);
  float angles[lanes] = {}, results[lanes];
  CHECK(wide_wave<Wave::sine, false>(angles, results));
  for (float unknown : {HUGE_VALF, -HUGE_VALF, from_bits<float>(0x7fc00000), 0x1p30f, -3e38f}) {
    CAPTURE(unknown);
    angles[17] = unknown;
    CHECK_FALSE(wide_wave<Wave::sine, false>(angles, results));
    CHECK_FALSE(wide_wave<Wave::cosine, true>(angles, results));
  }
}

#endif
