// Scales of block-scaled products by AVX-512, straight from the lanes' registers.
#pragma once

#include "emulator/tiles/wide_vectors.h"

#if defined(PTXREWRITE_WIDE_PRODUCTS)

namespace ptxrewrite::emulator::wide {

// The lanes that have the scales of A: in the order of a vector of rows, where rows eight apart are in adjacent lanes.
// Those of B: of four columns each for four words.
struct LanesOfScales {
  constexpr LanesOfScales() {
    for (unsigned i = 0; i < words_of_vector; ++i) {
      const unsigned row = i % 4 * 4 + i / 4;
      of_rows[i] = row % 8 * 4 + row / 8;
      of_columns[i] = i % columns * 4;
      of_words[0][i] = i / 4 * 4;
      of_words[1][i] = i / 4 * 4 + columns / 2 * 4;
    }
  }
  alignas(64) uint32_t of_rows[words_of_vector] = {},
                       of_columns[words_of_vector] = {}, of_words[2][words_of_vector] = {};
};
inline constexpr LanesOfScales lanes_of_scales;

// Words whose bytes 0, 1 ... are the scales of each block along k.
WIDE_INLINE __m512i read_scales(const WideScales& scales, const uint32_t (&lanes)[words_of_vector]) {
  const __m512i from = _mm512_add_epi32(_mm512_load_si512(lanes), _mm512_set1_epi32(static_cast<int>(scales.lane)));
  const __m512i words = _mm512_permutex2var_epi32(_mm512_loadu_si512(scales.lanes), from,
                                                  _mm512_loadu_si512(scales.lanes + words_of_vector));
  return _mm512_rorv_epi32(words, _mm512_set1_epi32(static_cast<int>(scales.byte * 8)));
}

// Are the first `count` bytes of each word scales between 2^-100 and 2^100, or zero? With them the product of each
// element and each scale is a normal number of f32.
template <unsigned count> WIDE_INLINE bool are_moderate(ir::ScalarType type, __m512i words) {
  constexpr uint64_t bytes = count == 4 ? ~0ull : count == 2 ? 0x3333333333333333 : 0x1111111111111111;
  constexpr char least = 127 - 100, span = static_cast<char>(200);
  if (type == ir::ScalarType::ue8m0)
    return _mm512_mask_cmpgt_epu8_mask(bytes, _mm512_sub_epi8(words, _mm512_set1_epi8(least)),
                                       _mm512_set1_epi8(span)) == 0;
  const __m512i nan = _mm512_set1_epi8(0x7f);
  return _mm512_mask_cmpeq_epi8_mask(bytes, _mm512_and_si512(words, nan), nan) == 0;
}

// The numbers of moderate scales, the lowest byte of each word; bit 7 of ue4m3 does not count.
WIDE_INLINE __m512 decode_scales(ir::ScalarType type, __m512i words) {
  constexpr int fraction = 23, own_fraction = 3, bias_apart = 127 - 7;
  if (type == ir::ScalarType::ue8m0)
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_and_si512(words, _mm512_set1_epi32(0xff)), fraction));
  const __m512i codes = _mm512_and_si512(words, _mm512_set1_epi32(0x7f));
  const __m512i normal =
      _mm512_add_epi32(_mm512_slli_epi32(codes, fraction - own_fraction), _mm512_set1_epi32(bias_apart << fraction));
  const __mmask16 is_subnormal = _mm512_cmplt_epi32_mask(codes, _mm512_set1_epi32(1 << own_fraction));
  return _mm512_mask_mul_ps(_mm512_castsi512_ps(normal), is_subnormal, _mm512_cvtepi32_ps(codes),
                            _mm512_set1_ps(0x1p-9f));
}

// The numbers of block `block`.
WIDE_INLINE __m512 scales_of_block(ir::ScalarType type, __m512i words, unsigned block) {
  using Words = uint32_t __attribute__((vector_size(64))); // shifts by numbers that inlining makes constants
  return decode_scales(type, (__m512i)((Words)words >> (8 * block)));
}

} // namespace ptxrewrite::emulator::wide
#endif
