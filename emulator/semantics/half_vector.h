// add, sub, mul and fma of f16 on eight numbers at once, for hosts with f16 conversion instructions (F16C). Results
// have the same bits as the functions of half.h without modifiers, for the same reasons.
#pragma once

#if defined(__F16C__) && defined(__AVX2__)
#define PTXREWRITE_HALF_VECTORS 1

#include "emulator/semantics/float_bits.h"

#include <bit>
#include <cstdint>
#include <immintrin.h>

namespace ptxrewrite::emulator::semantics {

inline constexpr unsigned halves_at_once = 8;
using Halves = int16_t __attribute__((vector_size(2 * halves_at_once)));
using Floats = float __attribute__((vector_size(4 * halves_at_once)));

inline Floats to_floats(Halves a) {
  return _mm256_cvtph_ps(std::bit_cast<__m128i>(a));
}

// To nearest even; NaNs become the canonical one.
inline Halves to_halves(Floats a) {
  const Halves code = std::bit_cast<Halves>(_mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  const Halves is_nan = (code & 0x7fff) > 0x7c00;
  return (code & ~is_nan) | (is_nan & 0x7fff);
}

inline Halves add_halves(Halves a, Halves b) {
  return to_halves(to_floats(a) + to_floats(b));
}
inline Halves sub_halves(Halves a, Halves b) {
  return to_halves(to_floats(a) - to_floats(b));
}
inline Halves mul_halves(Halves a, Halves b) {
  return to_halves(to_floats(a) * to_floats(b));
}

// The product is exact in f32, and the sum is rounded to odd (rounding.h): of the two f32 numbers around the exact sum
// the one towards zero, with its last bit set.
inline Halves fma_halves(Halves a, Halves b, Halves c) {
  using Words = int32_t __attribute__((vector_size(4 * halves_at_once)));
  using Bits = uint32_t __attribute__((vector_size(4 * halves_at_once))); // unsigned, so that -0 minus one wraps
  const Floats product = to_floats(a) * to_floats(b), addend = to_floats(c);
  const Floats sum = product + addend;
  const Floats addend_part = sum - product;
  const Floats error = (product - (sum - addend_part)) + (addend - addend_part);
  const Words inexact = (error < 0) | (error > 0); // not for NaN
  const Words too_far = ((Words)sum ^ (Words)error) >> 31;
  const Words odd = (Words)((Bits)sum + (Bits)too_far) | 1;
  return to_halves((Floats)(((Words)sum & ~inexact) | (odd & inexact)));
}

} // namespace ptxrewrite::emulator::semantics
#endif
