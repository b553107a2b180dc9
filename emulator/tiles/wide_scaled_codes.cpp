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

// The scales of the elements of each word of four columns, where a column has `elements`.
template <unsigned count, unsigned elements> WIDE_INLINE __m512 scales_of_words(const float* scales, unsigned half) {
  alignas(64) float of_words[words_of_half];
#pragma GCC unroll 16
  for (unsigned word = 0; word < words_of_half; ++word) {
    const unsigned column = half % 2 * 4 + word / words_of_line;
    const unsigned k = half / 2 * codes_of_line + word % words_of_line * codes_of_word;
    of_words[word] = scales[column * count + k * count / elements];
  }
  return _mm512_load_ps(of_words);
}

template <unsigned count> WIDE_INLINE void read_b(const WideOperands& operands, float* b) {
#pragma GCC unroll 4
  for (unsigned half = 0; half < 2 * parts; ++half) {
    const __m512 of_words = scales_of_words<count, stored>(operands.b_scales, half);
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

// --- sparse A: pairs of elements are stored, each one of four (sparse_metadata.h) ---

constexpr unsigned pairs_of_word = codes_of_word / 2, indices_of_word = 8;

// Scaled numbers of B: for each word the first elements of its four pairs, then the second ones, at place_of_pairs().
constexpr unsigned place_of_pairs(unsigned word, unsigned element, unsigned column) {
  const unsigned half = word / words_of_line * 2 + column / 4;
  return ((half * 2 + element) * words_of_line + word % words_of_line) * words_of_half + column % 4 * pairs_of_word;
}

template <unsigned count> WIDE_INLINE void read_pairs_of_b(const WideOperands& operands, float* b) {
#pragma GCC unroll 8
  for (unsigned half = 0; half < 4 * parts; ++half) {
    const __m512 of_words = scales_of_words<count, 2 * stored>(operands.b_scales, half);
    const __m512i words = _mm512_loadu_si512(operands.b[half / 2] + half % 2 * words_of_half);
#pragma GCC unroll 2
    for (unsigned element = 0; element < 2; ++element) {
      __m512i pairs[4];
#pragma GCC unroll 4
      for (unsigned i = 0; i < pairs_of_word; ++i)
        pairs[i] = _mm512_castps_si512(_mm512_mul_ps(elements_of(words, 2 * i + element), of_words));
      transpose_words(pairs);
#pragma GCC unroll 4
      for (unsigned i = 0; i < words_of_line; ++i)
        _mm512_store_si512(b + ((half * 2 + element) * words_of_line + i) * words_of_half, pairs[i]);
    }
  }
}

// --- the products ---

// Adds the products of element `k` of each row, as stored.
template <bool sparse>
WIDE_INLINE void add_products(__m512 a, const float* b, const __m512i (&metadata)[4], unsigned k,
                              __m512 (&sums)[columns]) {
  if constexpr (!sparse) {
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column)
      sums[column] = _mm512_fmadd_ps(a, _mm512_set1_ps(b[place_of(k, column)]), sums[column]);
  } else {
    using Words = uint32_t __attribute__((vector_size(64))); // shifts by numbers that unrolling makes constants
    const unsigned pair = k / 2;
    const auto index = (__m512i)((Words)metadata[pair / indices_of_word] >> (pair % indices_of_word * 2));
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column) {
      const __m512 four = _mm512_broadcast_f32x4(_mm_load_ps(b + place_of_pairs(pair / 2, k % 2, column)));
      sums[column] = _mm512_fmadd_ps(a, _mm512_permutevar_ps(four, index), sums[column]);
    }
  }
}

template <unsigned count, bool sparse>
[[WIDE_TARGET]] bool multiply_codes(const WideMethod&, const WideOperands& operands) {
  alignas(64) float b[stored * columns * (sparse ? 2 : 1)];
  __m512i metadata[4];
  if constexpr (sparse) {
    read_pairs_of_b<count>(operands, b);
    read_metadata<stored / 2>(operands, metadata);
  } else {
    read_b<count>(operands, b);
  }
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
      add_products<sparse>(a, b, metadata, k, sums);
    }
  }
  write_sums(operands.d, sums);
  return true;
}

} // namespace

WideRun wide_scaled_codes_run(const WideForm& form) {
  const bool are_codes = form.a_type == ir::ScalarType::e2m1 && form.b_type == form.a_type && !form.in_containers;
  if (!are_codes || form.m != rows || form.k != stored * (form.sparse ? 2 : 1) || form.has_half_sums) return nullptr;
  if (form.sparse) return form.scale_count == 4 ? &multiply_codes<4, true> : &multiply_codes<2, true>;
  return form.scale_count == 4 ? &multiply_codes<4, false> : &multiply_codes<2, false>;
}

#endif

} // namespace ptxrewrite::emulator
