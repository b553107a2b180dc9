// The video instructions on two halves or four bytes of one lane: vadd2, vsub4, vavrg2, vset4 and so on.
//
// Each element of a source is one of the 4 halves or 8 bytes of b:a. Results selected by the mask replace elements of c
// (truncated, or clamped to dtype with .sat) or, with .add, are summed up with all of c.
#pragma once

#include "emulator/semantics/compare.h"
#include "emulator/semantics/video.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

enum class SimdOperation : uint8_t { add, sub, avrg, absdiff, min, max };

struct SimdSource {
  uint16_t selector = 0; // 4 bits per element, element 0 lowest: the index of a half or byte of b:a
  bool is_signed = false;
};

struct SimdResult {
  bool is_signed = false; // dtype
  bool saturate = false;
  bool accumulate = false; // .add
  uint8_t mask = 0xf;      // bit i: element i is written (or added)
};

// Default selectors: the elements of a for source a, those of b for source b.
template <unsigned Elements> constexpr uint16_t simd_default_a = Elements == 2 ? 0x10 : 0x3210;
template <unsigned Elements> constexpr uint16_t simd_default_b = Elements == 2 ? 0x32 : 0x7654;

template <unsigned Elements> constexpr int64_t simd_extract(uint64_t both, SimdSource source, unsigned index) {
  constexpr unsigned width = 32 / Elements;
  const unsigned chosen = (source.selector >> (4 * index)) & (2 * Elements - 1);
  const auto part = static_cast<int64_t>(both >> (width * chosen));
  return source.is_signed ? sign_extend(part, width) : part & ((int64_t{1} << width) - 1);
}

// Applies `operation` to each pair of extended elements.
template <unsigned Elements, class Operation>
constexpr uint32_t each_element(uint32_t a, SimdSource a_source, uint32_t b, SimdSource b_source, uint32_t c,
                                const SimdResult& result, Operation operation) {
  constexpr unsigned width = 32 / Elements;
  const uint64_t both = (uint64_t{b} << 32) | a;
  uint32_t merged = c;
  uint32_t sum = c;
  for (unsigned i = 0; i < Elements; ++i) {
    int64_t value = operation(simd_extract<Elements>(both, a_source, i), simd_extract<Elements>(both, b_source, i));
    if (result.saturate) value = video_clamp(value, width, result.is_signed);
    const uint32_t chosen = 0u - ((result.mask >> i) & 1);
    const uint32_t field = (((1u << (width - 1)) << 1) - 1) << (width * i) & chosen;
    merged = (merged & ~field) | ((static_cast<uint32_t>(value) << (width * i)) & field);
    sum += static_cast<uint32_t>(value) & chosen;
  }
  return result.accumulate ? sum : merged;
}

constexpr int64_t simd_operation(SimdOperation operation, int64_t a, int64_t b) {
  switch (operation) {
  case SimdOperation::add:
    return a + b;
  case SimdOperation::sub:
    return a - b;
  case SimdOperation::avrg: // rounds halves away from zero
    return (a + b + (a + b >= 0)) >> 1;
  case SimdOperation::absdiff:
    return a < b ? b - a : a - b;
  case SimdOperation::min:
    return min(a, b);
  case SimdOperation::max:
    return max(a, b);
  }
  return 0;
}

template <unsigned Elements, SimdOperation Operation>
constexpr uint32_t video_simd(uint32_t a, SimdSource a_source, uint32_t b, SimdSource b_source, uint32_t c,
                              const SimdResult& result) {
  return each_element<Elements>(a, a_source, b, b_source, c, result,
                                [](int64_t x, int64_t y) { return simd_operation(Operation, x, y); });
}

// vset2 and vset4: 1 or 0 per element; never clamped.
template <unsigned Elements, IntegerComparison Comparison>
constexpr uint32_t vset_simd(uint32_t a, SimdSource a_source, uint32_t b, SimdSource b_source, uint32_t c,
                             SimdResult result) {
  result.saturate = false;
  return each_element<Elements>(a, a_source, b, b_source, c, result,
                                [](int64_t x, int64_t y) { return int64_t{compare<Comparison>(x, y)}; });
}

} // namespace ptxrewrite::emulator::semantics
