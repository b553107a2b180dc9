// Block-scaled mma.sync of e2m1, two in a byte, with two or four scales in each row of A and column of B, by whole
// warps.
#include "emulator/tiles/wide_scales.h"
#include "emulator/tiles/wide_sparse.h"

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

// For each line and word of four columns, where a column has `elements` and `count` scales: the first bit of the word's
// scale.
template <unsigned count, unsigned elements> struct BitsOfScales {
  static constexpr unsigned lines = elements / codes_of_line;
  constexpr BitsOfScales() {
    for (unsigned line = 0; line < lines; ++line)
      for (unsigned word = 0; word < words_of_half; ++word)
        of_words[line][word] = (line * codes_of_line + word % words_of_line * codes_of_word) * count / elements * 8;
  }
  alignas(64) uint32_t of_words[lines][words_of_half] = {};
};
template <unsigned count> constexpr BitsOfScales<count, stored> bits_of_scales;

template <unsigned count> WIDE_INLINE void read_b(const WideMethod& method, const WideOperands& operands, float* b) {
#pragma GCC unroll 4
  for (unsigned half = 0; half < 2 * parts; ++half) {
    const __m512i all = read_scales(operands.b_scales, lanes_of_scales.of_words[half % 2]);
    const __m512 of_words = decode_scales(
        method.scale_type, _mm512_srlv_epi32(all, _mm512_load_si512(bits_of_scales<count>.of_words[half / 2])));
    const __m512i words = _mm512_loadu_si512(operands.b[half / 2] + half % 2 * words_of_half);
#pragma GCC unroll 8
    for (unsigned i = 0; i < codes_of_word; ++i)
      _mm512_store_ps(b + (half * codes_of_word + i) * words_of_half, _mm512_mul_ps(elements_of(words, i), of_words));
  }
}

// --- sparse A: pairs of elements are stored, each one of four (sparse_metadata.h) ---

constexpr unsigned pairs_of_word = codes_of_word / 2, indices_of_word = 8;

// Scaled numbers of B: for each line the first elements of the pairs of each column, then the second ones. Pair `i` of
// word `w` is at place 4 * i + w, so that what metadata select is bits 2 and 3 of a place.
constexpr unsigned place_of_line(unsigned line, unsigned element, unsigned column) {
  return ((line * 2 + element) * columns + column) * words_of_vector;
}

// A line has one scale: it has as many elements as each of four scales, or half as many as each of two.
template <unsigned count>
WIDE_INLINE void read_pairs_of_b(const WideOperands& operands, const float (&scales)[count][words_of_vector],
                                 float* b) {
  const __m512i pairs_in_order = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24); // bits
#pragma GCC unroll 4
  for (unsigned line = 0; line < 2 * parts; ++line)
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column) {
      const auto* words = reinterpret_cast<const __m128i_u*>(operands.b[line]) + column;
      const __m512i pairs = _mm512_srlv_epi32(_mm512_broadcast_i32x4(_mm_loadu_si128(words)), pairs_in_order);
      const __m512 scale = _mm512_set1_ps(scales[line * count / (2 * parts)][column]);
#pragma GCC unroll 2
      for (unsigned element = 0; element < 2; ++element)
        _mm512_store_ps(b + place_of_line(line, element, column), _mm512_mul_ps(elements_of(pairs, element), scale));
    }
}

// For each row the place in a line of the pair that stored pair `pair` is multiplied by.
WIDE_INLINE __m512i places_of_pair(const __m512i (&metadata)[4], unsigned pair) {
  constexpr int select_and_add = 0xea;                     // (a & b) | c
  using Words = uint32_t __attribute__((vector_size(64))); // shifts by numbers that unrolling makes constants
  const auto words = (Words)metadata[pair / indices_of_word];
  const unsigned shift = pair % indices_of_word * 2;
  const auto index = (__m512i)(shift == 0 ? words << 2 : words >> (shift - 2));
  return _mm512_ternarylogic_epi32(index, _mm512_set1_epi32(3 << 2),
                                   _mm512_set1_epi32(static_cast<int>(pair / 2 % words_of_line)), select_and_add);
}

// --- the products ---

// Adds the products of element `k` of each row, as stored.
template <bool sparse>
WIDE_INLINE void add_products(__m512 a, const float* b, __m512i places, unsigned k, __m512 (&sums)[columns]) {
#pragma GCC unroll 8
  for (unsigned column = 0; column < columns; ++column) {
    const __m512 right = sparse
                             ? _mm512_permutexvar_ps(places, _mm512_load_ps(b + place_of_line(k / 16, k % 2, column)))
                             : _mm512_set1_ps(b[place_of(k, column)]);
    sums[column] = _mm512_fmadd_ps(a, right, sums[column]);
  }
}

template <unsigned count, bool sparse>
[[WIDE_TARGET]] bool multiply_codes(const WideMethod& method, const WideOperands& operands) {
  const __m512i of_rows = read_scales(operands.a_scales, lanes_of_scales.of_rows);
  const __m512i of_columns = read_scales(operands.b_scales, lanes_of_scales.of_columns);
  if (!are_moderate<count>(method.scale_type, of_rows) || !are_moderate<count>(method.scale_type, of_columns))
    return false;
  alignas(64) float b[stored * columns * (sparse ? 2 : 1)];
  __m512i metadata[4];
  if constexpr (sparse) {
    alignas(64) float b_scales[count][words_of_vector];
#pragma GCC unroll 4
    for (unsigned i = 0; i < count; ++i)
      _mm512_store_ps(b_scales[i], scales_of_block(method.scale_type, of_columns, i));
    leave_in_memory(b_scales);
    read_pairs_of_b<count>(operands, b_scales, b);
    read_metadata<stored / 2>(operands, metadata);
  } else {
    read_b<count>(method, operands, b);
  }
  leave_in_memory(b);
  __m512 scales[count];
#pragma GCC unroll 4
  for (unsigned i = 0; i < count; ++i)
    scales[i] = scales_of_block(method.scale_type, of_rows, i);
  __m512 sums[columns];
  read_sums(operands.c, sums);
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[words_of_line];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    transpose_words(words);
    __m512i places = _mm512_setzero_si512();
#pragma GCC unroll 32
    for (unsigned i = 0; i < codes_of_line; ++i) {
      const unsigned k = part * codes_of_line + i;
      if (sparse && k % 2 == 0) places = places_of_pair(metadata, k / 2);
      const __m512 a =
          _mm512_mul_ps(elements_of(words[i / codes_of_word], i % codes_of_word), scales[k * count / stored]);
      add_products<sparse>(a, b, places, k, sums);
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
