// wmma.mma.m16n16 of floats by whole warps. Lane 2 * r, and then lane 2 * r + 1, hold row r of the packed matrices, but
// for B of tf32, whose rows are in four lanes each.
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

template <bool half_sums> WIDE_INLINE void write_sums(uint32_t* const* d, const __m512 (&sums)[width]) {
  constexpr unsigned half = width / 2, registers = half_sums ? 4 : 8;
#pragma GCC unroll 8
  for (unsigned i = 0; i < registers; ++i) {
    if constexpr (half_sums)
      store_halves(d[i], {pair_of_halves(sums[2 * i], sums[2 * i + 1]),
                          pair_of_halves(sums[half + 2 * i], sums[half + 2 * i + 1])});
    else
      store_halves(d[i], {to_canonical_words(sums[i]), to_canonical_words(sums[half + i])});
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

} // namespace

WideRun wide_packed_run(const WideForm& form) {
  if (form.m != width || form.n != width || form.saturates || form.a_type != form.b_type) return nullptr;
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
