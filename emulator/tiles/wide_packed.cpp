// wmma.mma.m16n16 of floats and bytes by whole warps. Lane 2 * r, and then lane 2 * r + 1, hold row r of the packed
// matrices, but for B of tf32, whose rows are in four lanes each.
#include "emulator/tiles/wide_vectors.h"

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using ir::ScalarType;
using namespace wide;

constexpr unsigned width = 16; // rows and columns of D, rows of A, columns of B

// The words of the even lanes of a register, and of the odd ones.
struct Halves {
  __m512i even, odd;
};
WIDE_INLINE __m512i every_second(unsigned first) {
  const __m512i number = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_add_epi32(_mm512_add_epi32(number, number), _mm512_set1_epi32(static_cast<int>(first)));
}
WIDE_INLINE Halves load_halves(const uint32_t* lanes) {
  const __m512i lower = _mm512_loadu_si512(lanes), upper = _mm512_loadu_si512(lanes + words_of_vector);
  return {_mm512_permutex2var_epi32(lower, every_second(0), upper),
          _mm512_permutex2var_epi32(lower, every_second(1), upper)};
}
WIDE_INLINE void store_halves(uint32_t* lanes, const Halves& words) {
  const __m512i order = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i behind = _mm512_add_epi32(order, _mm512_set1_epi32(8));
  _mm512_storeu_si512(lanes, _mm512_permutex2var_epi32(words.even, order, words.odd));
  _mm512_storeu_si512(lanes + words_of_vector, _mm512_permutex2var_epi32(words.even, behind, words.odd));
}

template <bool half_sums> WIDE_INLINE void read_sums(const uint32_t* const* c, __m512 (&sums)[width]) {
  constexpr unsigned half = width / 2, registers = half_sums ? 4 : 8;
#pragma GCC unroll 8
  for (unsigned i = 0; i < registers; ++i) {
    const Halves words = load_halves(c[i]);
    if constexpr (half_sums) {
      sums[2 * i] = even_elements<Kind::f16>(words.even);
      sums[2 * i + 1] = odd_elements<Kind::f16>(words.even);
      sums[half + 2 * i] = even_elements<Kind::f16>(words.odd);
      sums[half + 2 * i + 1] = odd_elements<Kind::f16>(words.odd);
    } else {
      sums[i] = _mm512_castsi512_ps(words.even);
      sums[half + i] = _mm512_castsi512_ps(words.odd);
    }
  }
}

WIDE_INLINE __m512i pair_of_halves(__m512 first, __m512 second) {
  return _mm512_or_si512(to_half_words(first), _mm512_slli_epi32(to_half_words(second), 16));
}

template <bool half_sums> WIDE_INLINE void write_sums(uint32_t* const* d, __m512 (&sums)[width]) {
  if constexpr (!half_sums) make_canonical(sums);
  constexpr unsigned half = width / 2, registers = half_sums ? 4 : 8;
#pragma GCC unroll 8
  for (unsigned i = 0; i < registers; ++i) {
    if constexpr (half_sums)
      store_halves(d[i], {pair_of_halves(sums[2 * i], sums[2 * i + 1]),
                          pair_of_halves(sums[half + 2 * i], sums[half + 2 * i + 1])});
    else
      store_halves(d[i], {_mm512_castps_si512(sums[i]), _mm512_castps_si512(sums[half + i])});
  }
}

// The place of an element in the numbers of the four registers of B.
template <Kind kind> constexpr unsigned place_in_packed_b(unsigned k, unsigned column) {
  constexpr unsigned each = has_pairs(kind) ? 2 : 1, of_lane = 4 * each, lanes_of_row = width / of_lane;
  const unsigned lane = k * lanes_of_row + column / of_lane;
  return column % of_lane / each * (32 * each) + lane * each + column % each;
}

template <Kind kind> WIDE_INLINE void add_products(__m512 a, const float* b, unsigned k, __m512 (&sums)[width]) {
#pragma GCC unroll 16
  for (unsigned column = 0; column < width; ++column)
    sums[column] = _mm512_fmadd_ps(a, _mm512_set1_ps(b[place_in_packed_b<kind>(k, column)]), sums[column]);
}

template <Kind kind, bool half_sums>
[[WIDE_TARGET]] bool multiply_packed(const WideMethod& method, const WideOperands& operands) {
  constexpr unsigned registers = 4, each = has_pairs(kind) ? 2 : 1;
  alignas(64) float b[registers * 32 * each];
#pragma GCC unroll 4
  for (unsigned i = 0; i < registers; ++i)
    decode_b<kind>(method, operands.b[i], b + i * 32 * each);
  leave_in_memory(b);
  __m512 sums[width];
  read_sums<half_sums>(operands.c, sums);
  __m512i odd_lanes[registers];
#pragma GCC unroll 8
  for (unsigned i = 0; i < 2 * registers; ++i) {
    __m512i words;
    if (i < registers) {
      const Halves both = load_halves(operands.a[i]);
      words = both.even;
      odd_lanes[i] = both.odd;
    } else {
      words = odd_lanes[i - registers];
    }
    add_products<kind>(even_elements<kind>(words), b, i * each, sums);
    if constexpr (each == 2) add_products<kind>(odd_elements<kind>(words), b, i * each + 1, sums);
  }
  write_sums<half_sums>(operands.d, sums);
  return true;
}

// --- bytes ---

constexpr unsigned words_of_row = 4; // of A; of a column of B

// Words of four elements along k, columns[4 * word + column / 4], from the packed rows of B.
WIDE_INLINE void read_byte_columns(const uint32_t* const* b, __m128i (&columns_of)[words_of_row][4]) {
  alignas(64) __m128i packed[width];
#pragma GCC unroll 2
  for (unsigned i = 0; i < 2; ++i) { // two words in each lane, two lanes in each row
    const __m512i first = _mm512_loadu_si512(b[0] + i * words_of_vector);
    const __m512i second = _mm512_loadu_si512(b[1] + i * words_of_vector);
    const __m512i even_rows = _mm512_unpacklo_epi32(first, second), odd_rows = _mm512_unpackhi_epi32(first, second);
    const __m512i lower = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0),
                  upper = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    _mm512_store_si512(packed + i * 8, _mm512_permutex2var_epi64(even_rows, lower, odd_rows));
    _mm512_store_si512(packed + i * 8 + 4, _mm512_permutex2var_epi64(even_rows, upper, odd_rows));
  }
#pragma GCC unroll 4
  for (unsigned word = 0; word < words_of_row; ++word) {
    const __m128i* rows_of = packed + 4 * word;
    const __m128i low01 = _mm_unpacklo_epi8(rows_of[0], rows_of[1]), high01 = _mm_unpackhi_epi8(rows_of[0], rows_of[1]);
    const __m128i low23 = _mm_unpacklo_epi8(rows_of[2], rows_of[3]), high23 = _mm_unpackhi_epi8(rows_of[2], rows_of[3]);
    columns_of[word][0] = _mm_unpacklo_epi16(low01, low23);
    columns_of[word][1] = _mm_unpackhi_epi16(low01, low23);
    columns_of[word][2] = _mm_unpacklo_epi16(high01, high23);
    columns_of[word][3] = _mm_unpackhi_epi16(high01, high23);
  }
}

// A column of D.
template <bool are_signed>
WIDE_INLINE __m512i sum_of_bytes(const WideMethod& method, const __m512i (&a)[words_of_row],
                                 const __m128i (&b)[words_of_row][4], const int32_t (&corrections)[width],
                                 unsigned column, __m512i before) {
  const __m512i start = _mm512_set1_epi32(corrections[column]);
  __m512i sum = method.saturates ? start : _mm512_add_epi32(start, before);
#pragma GCC unroll 4
  for (unsigned word = 0; word < words_of_row; ++word) {
    const auto* of_word = reinterpret_cast<const int32_t*>(b[word]);
    sum = add_byte_products<are_signed>(sum, a[word], _mm512_set1_epi32(of_word[column]));
  }
  return method.saturates ? add_clamped(sum, before) : sum;
}

template <bool are_signed>
[[WIDE_TARGET]] bool multiply_packed_bytes(const WideMethod& method, const WideOperands& operands) {
  alignas(64) __m128i b[words_of_row][4];
  read_byte_columns(operands.b, b);
  leave_in_memory(b);
  __m512i corrections = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (const auto& word : b)
    corrections = add_byte_products<are_signed>(corrections, _mm512_set1_epi8(1), _mm512_load_si512(word));
  corrections = _mm512_slli_epi32(corrections, 7);
  if constexpr (are_signed) corrections = _mm512_sub_epi32(_mm512_setzero_si512(), corrections);
  alignas(64) int32_t of_columns[width];
  _mm512_store_si512(of_columns, corrections);
  leave_in_memory(of_columns);
  // A lane has eight bytes of a row: words 0 and 1 of the row in even lanes, 2 and 3 in odd ones.
  const Halves first = load_halves(operands.a[0]), second = load_halves(operands.a[1]);
  const __m512i change = _mm512_set1_epi8(static_cast<char>(0x80));
  const __m512i a[words_of_row] = {_mm512_xor_si512(first.even, change), _mm512_xor_si512(second.even, change),
                                   _mm512_xor_si512(first.odd, change), _mm512_xor_si512(second.odd, change)};
#pragma GCC unroll 8
  for (unsigned i = 0; i < width / 2; ++i) {
    const Halves before = load_halves(operands.c[i]);
    store_halves(operands.d[i], {sum_of_bytes<are_signed>(method, a, b, of_columns, i, before.even),
                                 sum_of_bytes<are_signed>(method, a, b, of_columns, width / 2 + i, before.odd)});
  }
  return true;
}

} // namespace

WideRun wide_packed_run(const WideForm& form) {
  if (form.m != width || form.n != width || form.a_type != form.b_type) return nullptr;
  if (form.a_type == ScalarType::s8) return &multiply_packed_bytes<true>;
  if (form.a_type == ScalarType::u8) return &multiply_packed_bytes<false>;
  if (form.saturates) return nullptr;
  switch (form.a_type) {
  case ScalarType::f16:
    return form.has_half_sums ? &multiply_packed<Kind::f16, true> : &multiply_packed<Kind::f16, false>;
  case ScalarType::bf16:
    return &multiply_packed<Kind::bf16, false>;
  case ScalarType::tf32:
    return &multiply_packed<Kind::tf32, false>;
  default:
    return nullptr;
  }
}

#endif

} // namespace ptxrewrite::emulator
