// add, sub, mul and fma of f16 on sixteen numbers at once, for hosts with AVX-512, whatever the compiler's -march is.
// Results have the same bits as the functions of half.h without modifiers.
#pragma once

#include "emulator/semantics/half_vector.h"
#include "emulator/semantics/host_vectors.h"

#if defined(PTXREWRITE_HALF_VECTORS) && defined(__x86_64__)
#define PTXREWRITE_WIDE_HALVES 1

#include <immintrin.h>

namespace ptxrewrite::emulator::semantics {

enum class HalfOperation : uint8_t { add, sub, mul, fma };
inline constexpr unsigned wide_halves_at_once = 16;

inline bool host_has_wide_halves() {
  return host_has_avx512();
}

// count: a multiple of 16. c: only for fma. results: may be an operand.
template <HalfOperation operation>
[[gnu::target("avx512f,avx512bw,avx512vl,f16c")]] inline void
wide_halves(const int16_t* a, const int16_t* b, const int16_t* c, unsigned count, int16_t* results) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  constexpr __mmask16 all = 0xffff; // GCC 12 warns of the intrinsics without a mask
  for (unsigned i = 0; i < count; i += wide_halves_at_once) {
    const __m512 x = _mm512_maskz_cvtph_ps(all, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)));
    const __m512 y = _mm512_maskz_cvtph_ps(all, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i)));
    __m512 result;
    if constexpr (operation == HalfOperation::add) {
      result = _mm512_add_ps(x, y);
    } else if constexpr (operation == HalfOperation::sub) {
      result = _mm512_sub_ps(x, y);
    } else if constexpr (operation == HalfOperation::mul) {
      result = _mm512_mul_ps(x, y);
    } else {
      // Rounded to odd (rounding.h): of the two f32 numbers around an inexact sum, one has its last bit set. Exact sums
      // are the same twice but for zeros, whose sign is that of the upper one.
      const __m512 z = _mm512_maskz_cvtph_ps(all, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c + i)));
      const __m512 lower = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
      const __m512 upper = _mm512_fmadd_round_ps(x, y, z, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
      const __mmask16 is_odd = _mm512_test_epi32_mask(_mm512_castps_si512(lower), _mm512_set1_epi32(1));
      result = _mm512_mask_mov_ps(upper, is_odd, lower);
    }
    const __mmask16 is_nan = _mm512_cmp_ps_mask(result, result, _CMP_UNORD_Q);
    const __m256i halves =
        _mm256_mask_mov_epi16(_mm512_maskz_cvtps_ph(all, result, nearest), is_nan, _mm256_set1_epi16(0x7fff));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(results + i), halves);
  }
}

} // namespace ptxrewrite::emulator::semantics
#endif
