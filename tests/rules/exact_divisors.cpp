// Compares x / c with the replacement by pass `divisor`, for the literals c that the pass knows: all floats (--all), or
// those around the smallest, the largest, 1 and infinities. Negative numbers behave like positive ones, with signs.
#include "transforms/divisor/float_division.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

// Uses fused multiply-adds of the host, many at once.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FAST_VERSIONS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FAST_VERSIONS
#endif

constexpr uint32_t at_once = 4096;

float corrected(float x, float divisor, float reciprocal) {
  const float q = x * reciprocal;
  const float rest = std::fma(q, divisor, -x);
  const float number = rest > -FLT_MAX ? rest : -FLT_MAX; // PTX's max: NaN gives the other operand
  return std::fma(number, -reciprocal, q);
}

FAST_VERSIONS uint64_t wrong_among(float divisor, uint32_t first) {
  const float reciprocal = 1.0f / divisor;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < at_once; ++i) {
    const auto x = std::bit_cast<float>(first + i);
    const float q = x * reciprocal;
    const float rest = std::fma(q, divisor, -x);
    const float number = rest > -FLT_MAX ? rest : -FLT_MAX;
    wrong += std::bit_cast<uint32_t>(std::fma(number, -reciprocal, q)) != std::bit_cast<uint32_t>(x / divisor);
  }
  return wrong;
}

// `step` of 1: all numbers; of n: every n-th block of `at_once`.
uint64_t wrong_in(float divisor, uint64_t first, uint64_t end, uint64_t step = 1) {
  uint64_t wrong = 0;
  for (; first < end; first += at_once * step)
    wrong += wrong_among(divisor, static_cast<uint32_t>(first));
  return wrong;
}

constexpr uint64_t infinity = 0x7f800000;
constexpr uint64_t sparse = 8;

// Around the smallest normal number all floats; above it, where a subnormal remainder makes each division slow, every
// eighth block. Each `phase` takes other blocks, so that eight literals take all of them.
uint64_t wrong_at_edges(float divisor, uint64_t phase) {
  return wrong_in(divisor, 0, 0x100000) + wrong_in(divisor, 0x00700000, 0x00900000) +
         wrong_in(divisor, 0x00900000 + phase % sparse * at_once, 0x02000000, sparse) +
         wrong_in(divisor, 0x3f800000, 0x3fa00000) + wrong_in(divisor, infinity - 0x100000, infinity);
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

} // namespace

int main(int count, char** arguments) {
  const bool all = count == 2 && std::strcmp(arguments[1], "--all") == 0;
  std::vector<float> divisors;
  for (uint32_t i = 0; i < 1u << 20; ++i) // numbers of up to 18 bits, and halves
    if (const float number = static_cast<float>(i) / 2;
        ptxrewrite::transforms::is_exact_divisor(std::bit_cast<uint32_t>(number)))
      divisors.push_back(number);
  int failures = 0;
  uint64_t phase = 0;
  for (const float divisor : divisors) {
    const uint64_t wrong = all ? wrong_in(divisor, 0, infinity) : wrong_at_edges(divisor, phase++);
    bool ends = true;
    for (float x : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -FLT_MAX, -FLT_MIN, -1e-45f, -1.0f, -divisor})
      ends &= same(corrected(x, divisor, 1.0f / divisor), x / divisor);
    if (wrong == 0 && ends) continue;
    std::printf("%g: %llu wrong%s\n", double(divisor), static_cast<unsigned long long>(wrong),
                ends ? "" : ", ends or signs, too");
    ++failures;
  }
  std::printf("%zu literals, %s\n", divisors.size(), all ? "all floats" : "edges");
  // 10 is not supported: quotients that are subnormal would be wrong.
  const bool knows_wrong = wrong_at_edges(10, 0) != 0;
  if (!knows_wrong) std::puts("10 was expected to go wrong");
  return failures != 0 || !knows_wrong || divisors.size() < 100;
}
