// Arithmetic on sizes that come from a text and may be any number: results beyond 64 bits saturate instead of wrapping,
// so that one comparison with a limit rejects them.
#pragma once

#include <cstdint>
#include <limits>

namespace ptxrewrite {

constexpr uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

constexpr uint64_t saturating_multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

// The lowest multiple of `alignment` (not 0) that is at least `value`.
constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  const uint64_t beyond = value % alignment;
  return beyond == 0 ? value : saturating_add(value, alignment - beyond);
}

} // namespace ptxrewrite
