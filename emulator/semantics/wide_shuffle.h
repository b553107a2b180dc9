// The values of shfl for all lanes of a warp (PTX ISA 9.7.9.6) by AVX-512: two permutations of two vectors.
#pragma once

#include "emulator/semantics/host_vectors.h"

#include <cstdint>

namespace ptxrewrite::emulator::semantics {

enum class ShuffleMode : uint8_t { up, down, butterfly, index };

} // namespace ptxrewrite::emulator::semantics

#if defined(__x86_64__)
#define PTXREWRITE_WIDE_SHUFFLE 1

#include <immintrin.h>

// GCC 12 takes the undefined vectors inside of the intrinsics for uninitialized variables.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ptxrewrite::emulator::semantics {

// results[lane] is the value of the lane that `lane` reads, for the operands b and c of each lane; its own value if
// that lane is out of range or not in `lanes`. Returns the lanes whose source is in range. results: may be an operand.
template <ShuffleMode mode>
[[gnu::target("avx512f")]] inline uint32_t wide_shuffle(const uint32_t* values, const uint32_t* b, const uint32_t* c,
                                                        uint32_t lanes, uint32_t* results) {
  constexpr unsigned half = 16;
  const __m512i low_bits = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);
  const __m512i first = _mm512_loadu_si512(values), second = _mm512_loadu_si512(values + half);
  const __m512i present = _mm512_set1_epi32(static_cast<int>(lanes));
  __m512i own = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i chosen[2];
  uint32_t all_in_range = 0;
  for (unsigned i = 0; i < 2; ++i) {
    const __m512i distance = _mm512_and_si512(_mm512_loadu_si512(b + i * half), low_bits);
    const __m512i limits = _mm512_loadu_si512(c + i * half);
    const __m512i clamp = _mm512_and_si512(limits, low_bits);
    const __m512i segment = _mm512_and_si512(_mm512_srli_epi32(limits, 8), low_bits);
    const __m512i lowest = _mm512_and_si512(own, segment);
    const __m512i bound = _mm512_or_si512(lowest, _mm512_andnot_si512(segment, clamp));
    __m512i from = _mm512_or_si512(lowest, _mm512_andnot_si512(segment, distance));
    if constexpr (mode == ShuffleMode::up) from = _mm512_sub_epi32(own, distance);
    if constexpr (mode == ShuffleMode::down) from = _mm512_add_epi32(own, distance);
    if constexpr (mode == ShuffleMode::butterfly) from = _mm512_xor_si512(own, distance);
    const __mmask16 in_range =
        mode == ShuffleMode::up ? _mm512_cmpge_epi32_mask(from, bound) : _mm512_cmple_epi32_mask(from, bound);
    all_in_range |= uint32_t{in_range} << (i * half);
    // The permutation reads the low five bits of a place; so does the shift only of places that are in range.
    const __mmask16 is_present = _mm512_mask_test_epi32_mask(in_range, _mm512_srlv_epi32(present, from), one);
    from = _mm512_mask_mov_epi32(own, is_present, from);
    chosen[i] = _mm512_permutex2var_epi32(first, from, second);
    own = _mm512_add_epi32(own, _mm512_set1_epi32(half));
  }
  _mm512_storeu_si512(results, chosen[0]);
  _mm512_storeu_si512(results + half, chosen[1]);
  return all_in_range;
}

} // namespace ptxrewrite::emulator::semantics

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
