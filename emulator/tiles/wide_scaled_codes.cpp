// Block-scaled mma.sync of e2m1, two in a byte, with two or four scales in each row of A and column of B, by whole
// warps.
#include "emulator/tiles/wide_vectors.h"

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

constexpr unsigned codes_of_word = 8, codes_of_line = 32, parts = 2, stored = parts * codes_of_line;

// Element `i` of the eight in each word.
WIDE_INLINE __m512 elements_of(__m512i words, unsigned i) {
  using Words = uint32_t __attribute__((vector_size(64))); // shifts by numbers that inlining makes constants
  const __m512 numbers = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f,
                                        -2.0f, -3.0f, -4.0f, -6.0f);
  return _mm512_permutexvar_ps((__m512i)((Words)words >> (4 * i)), numbers); // by the lowest four bits
}

// Scaled numbers of B: for each four columns (see place_of) the elements 0 to 7 of words, sixteen words each.
constexpr unsigned words_of_half = words_of_line * columns / 2;
constexpr unsigned place_of(unsigned k, unsigned column) {
  const unsigned half = k / codes_of_line * 2 + column / 4, word = column % 4 * words_of_line;
  return (half * codes_of_word + k % codes_of_word) * words_of_half + word + k % codes_of_line / codes_of_word;
}

template <unsigned count> WIDE_INLINE void read_b(const WideOperands& operands, float* b) {
#pragma GCC unroll 4
  for (unsigned half = 0; half < 2 * parts; ++half) {
    alignas(64) float scales[words_of_half]; // of the elements of each word
#pragma GCC unroll 16
    for (unsigned word = 0; word < words_of_half; ++word) {
      const unsigned column = half % 2 * 4 + word / words_of_line;
      const unsigned k = half / 2 * codes_of_line + word % words_of_line * codes_of_word;
      scales[word] = operands.b_scales[column * count + k * count / stored];
    }
    const __m512 of_words = _mm512_load_ps(scales);
    const __m512i words = _mm512_loadu_si512(operands.b[half / 2] + half % 2 * words_of_half);
#pragma GCC unroll 8
    for (unsigned i = 0; i < codes_of_word; ++i)
      _mm512_store_ps(b + (half * codes_of_word + i) * words_of_half, _mm512_mul_ps(elements_of(words, i), of_words));
  }
}

// The scales of a block of each row, in the order of a vector of rows.
template <unsigned count> WIDE_INLINE __m512 scales_of_rows(const float* scales, unsigned block) {
  const __m512i rows_in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i places = _mm512_mullo_epi32(rows_in_order, _mm512_set1_epi32(count));
  return _mm512_i32gather_ps(places, scales + block, sizeof(float));
}

template <unsigned count> [[WIDE_TARGET]] bool multiply_codes(const WideMethod&, const WideOperands& operands) {
  alignas(64) float b[stored * columns];
  read_b<count>(operands, b);
  leave_in_memory(b);
  __m512 sums[columns];
  read_sums(operands.c, sums);
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[words_of_line];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    transpose_words(words);
    __m512 scales = _mm512_setzero_ps();
#pragma GCC unroll 32
    for (unsigned i = 0; i < codes_of_line; ++i) {
      const unsigned k = part * codes_of_line + i;
      if (k % (stored / count) == 0) scales = scales_of_rows<count>(operands.a_scales, k * count / stored);
      const __m512 a = _mm512_mul_ps(elements_of(words[i / codes_of_word], i % codes_of_word), scales);
#pragma GCC unroll 8
      for (unsigned column = 0; column < columns; ++column)
        sums[column] = _mm512_fmadd_ps(a, _mm512_set1_ps(b[place_of(k, column)]), sums[column]);
    }
  }
  write_sums(operands.d, sums);
  return true;
}

} // namespace

WideRun wide_scaled_codes_run(const WideForm& form) {
  const bool are_codes = form.a_type == ir::ScalarType::e2m1 && form.b_type == form.a_type && !form.in_containers;
  if (!are_codes || form.m != rows || form.k != stored || form.sparse || form.has_half_sums) return nullptr;
  return form.scale_count == 4 ? &multiply_codes<4> : &multiply_codes<2>;
}

#endif

} // namespace ptxrewrite::emulator
