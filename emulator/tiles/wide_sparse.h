// Sparse products of floats by AVX-512: the rows of A that wide_vectors.h describes, each times its own elements of B.
// Sixteen numbers of a column of B lie together: an instruction selects one of them for each row, from memory.
#pragma once

#include "emulator/tiles/wide_vectors.h"

#if defined(PTXREWRITE_WIDE_PRODUCTS)

namespace ptxrewrite::emulator::wide {

// --- B ---
//
// A line: of each column sixteen elements along k, which eight stored elements of A are multiplied by.

constexpr unsigned of_sparse_line = words_of_vector, stored_of_sparse_line = of_sparse_line / 2;
using SparseLine = __m512[columns];

// Registers with the elements of a line.
template <Kind kind> constexpr unsigned registers_of_sparse_line = 1;
template <> inline constexpr unsigned registers_of_sparse_line<Kind::f16> = 2;
template <> inline constexpr unsigned registers_of_sparse_line<Kind::bf16> = 2;
template <> inline constexpr unsigned registers_of_sparse_line<Kind::tf32> = 4;

// Four columns of tf32: exchanges the 16-byte parts of four vectors like rows and columns.
WIDE_INLINE void transpose_quarters(__m512i (&v)[4]) {
  const __m512i even01 = _mm512_shuffle_i32x4(v[0], v[1], 0x88), odd01 = _mm512_shuffle_i32x4(v[0], v[1], 0xdd);
  const __m512i even23 = _mm512_shuffle_i32x4(v[2], v[3], 0x88), odd23 = _mm512_shuffle_i32x4(v[2], v[3], 0xdd);
  v[0] = _mm512_shuffle_i32x4(even01, even23, 0x88);
  v[1] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
  v[2] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
  v[3] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
}

// For the four columns of which a vector has sixteen bytes each: places of bytes of f32 numbers among the low and the
// high bytes of bf16 ones. The lower half of a number is zero.
struct PlacesOfBytes {
  constexpr PlacesOfBytes() {
    for (unsigned column = 0; column < 4; ++column)
      for (unsigned i = 0; i < words_of_vector; ++i) {
        of_column[column][4 * i + 2] = static_cast<uint8_t>(column * 16 + i);
        of_column[column][4 * i + 3] = static_cast<uint8_t>(64 + column * 16 + i);
      }
  }
  alignas(64) uint8_t of_column[4][64] = {};
};
inline constexpr PlacesOfBytes places_of_bytes;
constexpr uint64_t upper_halves = 0xcccccccccccccccc;

// `scales`: of the columns; nullptr: none.
WIDE_INLINE void decode_sparse_codes(const CodeTable& table, const uint32_t* lanes, const float* scales,
                                     SparseLine& line) {
#pragma GCC unroll 2
  for (unsigned half = 0; half < 2; ++half) {
    const __m512i codes = _mm512_loadu_si512(lanes + half * words_of_vector);
    const __m512i sign = _mm512_and_si512(codes, _mm512_set1_epi8(static_cast<char>(table.sign)));
    const __m512i low = look_up(table.low, codes), high = _mm512_or_si512(look_up(table.high, codes), sign);
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; ++i) {
      const __m512i places = _mm512_load_si512(places_of_bytes.of_column[i]);
      __m512 numbers = _mm512_castsi512_ps(_mm512_maskz_permutex2var_epi8(upper_halves, low, places, high));
      if (scales) numbers = _mm512_mul_ps(numbers, _mm512_set1_ps(scales[half * 4 + i]));
      line[half * 4 + i] = numbers;
    }
  }
}

template <Kind kind>
WIDE_INLINE void decode_sparse_line(const WideMethod& method, const uint32_t* const* registers, const float* scales,
                                    SparseLine& line) {
  if constexpr (kind == Kind::codes) {
    decode_sparse_codes(*method.b_table, registers[0], scales, line);
  } else if constexpr (kind == Kind::tf32) {
#pragma GCC unroll 2
    for (unsigned half = 0; half < 2; ++half) {
      __m512i lines[4];
#pragma GCC unroll 4
      for (unsigned i = 0; i < 4; ++i)
        lines[i] = _mm512_loadu_si512(registers[i] + half * words_of_vector);
      transpose_quarters(lines);
#pragma GCC unroll 4
      for (unsigned i = 0; i < 4; ++i)
        line[half * 4 + i] = even_elements<kind>(lines[i]);
    }
  } else {
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column) {
      const auto* lower = reinterpret_cast<const __m128i_u*>(registers[0]) + column;
      const auto* upper = reinterpret_cast<const __m128i_u*>(registers[1]) + column;
      const __m256i halves =
          _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(lower)), _mm_loadu_si128(upper), 1);
      line[column] = kind == Kind::f16 ? from_halves(halves)
                                       : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
    }
  }
}

// --- the elements of B ---

// Places of the elements of B that are multiplied by element `k` of A, as stored, if `first` is that of the first one
// of those that the metadata select from. A 2-bit index selects one of four units along k; a tf32 element is two units
// (sparse_metadata.h).
template <Kind kind> WIDE_INLINE __m512i sparse_places(const __m512i (&metadata)[4], unsigned k, unsigned first) {
  constexpr unsigned indices_of_word = 8, each = kind == Kind::tf32 ? 2 : 1;
  constexpr int select_and_add = 0xea; // (a & b) | c
  const unsigned index = each * k;
  using Words = uint32_t __attribute__((vector_size(64))); // shifts by a number that inlining makes a constant
  const unsigned shift = index % indices_of_word * 2 + (each - 1);
  const auto shifted = (__m512i)((Words)metadata[index / indices_of_word] >> shift);
  return _mm512_ternarylogic_epi32(shifted, _mm512_set1_epi32(kind == Kind::tf32 ? 1 : 3),
                                   _mm512_set1_epi32(static_cast<int>(first)), select_and_add);
}
// In line k / 8.
template <Kind kind> WIDE_INLINE __m512i sparse_places(const __m512i (&metadata)[4], unsigned k) {
  return sparse_places<kind>(metadata, k, (kind == Kind::tf32 ? 2 * k : k / 2 * 4) % of_sparse_line);
}

// Adds the products of an element of each row and the elements of B at `places`.
WIDE_INLINE void add_sparse_products(__m512 a, const SparseLine& line, __m512i places, __m512 (&sums)[columns]) {
#pragma GCC unroll 8
  for (unsigned column = 0; column < columns; ++column)
    sums[column] = _mm512_fmadd_ps(a, _mm512_permutexvar_ps(places, line[column]), sums[column]);
}

// --- tf32 straight from registers ---
//
// A register has four elements along k of all columns: those of columns 0 to 3 and those of columns 4 to 7 are a vector
// each, from which a place selects an element of one of four columns. No element has to be moved before.

using Tf32Columns = __m512i[columns / 4];

template <unsigned registers>
WIDE_INLINE void read_sparse_tf32(const uint32_t* const* b, Tf32Columns (&numbers)[registers]) {
#pragma GCC unroll 4
  for (unsigned i = 0; i < registers; ++i)
#pragma GCC unroll 2
    for (unsigned half = 0; half < columns / 4; ++half)
      numbers[i][half] =
          _mm512_castps_si512(even_elements<Kind::tf32>(_mm512_loadu_si512(b[i] + half * words_of_vector)));
}

// Adds the products of element `k` of A, as stored.
template <unsigned registers>
WIDE_INLINE void add_sparse_tf32(__m512 a, const Tf32Columns (&numbers)[registers], const __m512i (&metadata)[4],
                                 unsigned k, __m512 (&sums)[columns]) {
#pragma GCC unroll 4
  for (unsigned column = 0; column < columns / 2; ++column) {
    const __m512i places = sparse_places<Kind::tf32>(metadata, k, k % 2 * 2 + column * 4);
#pragma GCC unroll 2
    for (unsigned half = 0; half < columns / 4; ++half) {
      const __m512 selected = _mm512_permutexvar_ps(places, _mm512_castsi512_ps(numbers[k / 2][half]));
      sums[half * 4 + column] = _mm512_fmadd_ps(a, selected, sums[half * 4 + column]);
    }
  }
}

} // namespace ptxrewrite::emulator::wide
#endif
