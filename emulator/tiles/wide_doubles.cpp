// mma.sync and wmma.mma of f64 by whole warps. The packed A, C and D of wmma.m8n8k4 lie as mma's do.
#include "emulator/tiles/wide_vectors.h"

#include <cfenv>

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

constexpr unsigned of_line = 4, rows_of_block = 8; // elements of a line, which a row of A and a column of B have in a
                                                   // register; rows of a register
constexpr unsigned of_vector = 8;

constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// The host rounds to nearest unless told otherwise, and then may read an operand in the same instruction.
template <int rounding> WIDE_INLINE __m512d multiply_add(__m512d a, __m512d b, __m512d sums) {
  if constexpr (rounding == to_nearest) return _mm512_fmadd_pd(a, b, sums);
  return _mm512_fmadd_round_pd(a, b, sums, rounding);
}

WIDE_INLINE __m512d load_doubles(const uint32_t* lanes, unsigned vector) {
  return _mm512_loadu_pd(reinterpret_cast<const double*>(lanes) + vector * of_vector);
}

// A NaN's payload depends on the order of an instruction's operands: products with one take the general way.

// --- eight rows ---
//
// A vector holds two rows of C or D as a register has them: four columns each, the even or the odd ones. Thus sums need
// no shuffles, and there are few loads: a processor that has many of them before it does not see the next instruction.

constexpr unsigned pairs_of_block = rows_of_block / 2;

// The even columns of a row of B twice, and the odd ones.
struct RowOfB {
  __m512d even, odd;
};

// Transposes a register of B, whose vectors have two lines each: of an even column and of an odd one.
WIDE_INLINE void load_b(const uint32_t* lanes, RowOfB (&b)[of_line]) {
  const __m512i even0 = _mm512_set_epi64(9, 8, 1, 0, 9, 8, 1, 0), odd0 = _mm512_set_epi64(13, 12, 5, 4, 13, 12, 5, 4);
  const __m512i even2 = _mm512_set_epi64(11, 10, 3, 2, 11, 10, 3, 2),
                odd2 = _mm512_set_epi64(15, 14, 7, 6, 15, 14, 7, 6);
  const __m512d lines[] = {load_doubles(lanes, 0), load_doubles(lanes, 1), load_doubles(lanes, 2),
                           load_doubles(lanes, 3)};
#pragma GCC unroll 2
  for (unsigned i = 0; i < 2; ++i) {
    const __m512d left = i ? _mm512_unpackhi_pd(lines[0], lines[1]) : _mm512_unpacklo_pd(lines[0], lines[1]);
    const __m512d right = i ? _mm512_unpackhi_pd(lines[2], lines[3]) : _mm512_unpacklo_pd(lines[2], lines[3]);
    b[i] = {_mm512_permutex2var_pd(left, even0, right), _mm512_permutex2var_pd(left, odd0, right)};
    b[2 + i] = {_mm512_permutex2var_pd(left, even2, right), _mm512_permutex2var_pd(left, odd2, right)};
  }
}

// wmma: B is packed, a row behind the other.
WIDE_INLINE void load_packed_b(const uint32_t* lanes, RowOfB (&b)[of_line]) {
  const __m512i even = _mm512_set_epi64(6, 4, 2, 0, 6, 4, 2, 0), odd = _mm512_set_epi64(7, 5, 3, 1, 7, 5, 3, 1);
#pragma GCC unroll 4
  for (unsigned i = 0; i < of_line; ++i) {
    const __m512d row = load_doubles(lanes, i);
    b[i] = {_mm512_permutexvar_pd(even, row), _mm512_permutexvar_pd(odd, row)};
  }
}

// Element `i` of each of two rows' lines, for all columns.
template <unsigned i> WIDE_INLINE __m512d element_of_rows(__m512d lines) {
  return _mm512_permutex_pd(lines, i * 0x55);
}

struct SumsOfRows {
  __m512d even, odd;
};
template <unsigned i, int rounding>
WIDE_INLINE void add_products(const __m512d (&lines)[pairs_of_block], const RowOfB (&b)[of_line],
                              SumsOfRows (&sums)[pairs_of_block]) {
#pragma GCC unroll 4
  for (unsigned pair = 0; pair < pairs_of_block; ++pair) {
    const __m512d a = element_of_rows<i>(lines[pair]);
    sums[pair].even = multiply_add<rounding>(a, b[i].even, sums[pair].even);
    sums[pair].odd = multiply_add<rounding>(a, b[i].odd, sums[pair].odd);
  }
}

template <bool is_packed, int rounding>
[[WIDE_TARGET]] bool multiply_eight_rows(const WideMethod&, const WideOperands& operands) {
  RowOfB b[of_line];
  is_packed ? load_packed_b(operands.b[0], b) : load_b(operands.b[0], b);
  __m512d lines[pairs_of_block];
  SumsOfRows sums[pairs_of_block];
#pragma GCC unroll 4
  for (unsigned pair = 0; pair < pairs_of_block; ++pair) {
    lines[pair] = load_doubles(operands.a[0], pair);
    sums[pair] = {load_doubles(operands.c[0], pair), load_doubles(operands.c[1], pair)};
  }
  add_products<0, rounding>(lines, b, sums);
  add_products<1, rounding>(lines, b, sums);
  add_products<2, rounding>(lines, b, sums);
  add_products<3, rounding>(lines, b, sums);
  __mmask8 has_nan = 0;
#pragma GCC unroll 4
  for (const SumsOfRows& pair : sums)
    has_nan |= _mm512_cmp_pd_mask(pair.even, pair.odd, _CMP_UNORD_Q);
  if (has_nan) return false;
  auto* even = reinterpret_cast<double*>(operands.d[0]);
  auto* odd = reinterpret_cast<double*>(operands.d[1]);
#pragma GCC unroll 4
  for (unsigned pair = 0; pair < pairs_of_block; ++pair) {
    _mm512_storeu_pd(even + pair * of_vector, sums[pair].even);
    _mm512_storeu_pd(odd + pair * of_vector, sums[pair].odd);
  }
  return true;
}

// --- sixteen rows ---
//
// A vector holds a row of C or D: columns 0, 2, 4, 6, then 1, 3, 5, 7, each four as a register has them.
WIDE_INLINE __m512d load_row(const uint32_t* even_columns, const uint32_t* odd_columns, unsigned row) {
  return _mm512_insertf64x4(
      _mm512_castpd256_pd512(_mm256_loadu_pd(reinterpret_cast<const double*>(even_columns) + row * of_line)),
      _mm256_loadu_pd(reinterpret_cast<const double*>(odd_columns) + row * of_line), 1);
}
WIDE_INLINE void store_row(uint32_t* even_columns, uint32_t* odd_columns, unsigned row, __m512d sums) {
  _mm256_storeu_pd(reinterpret_cast<double*>(even_columns) + row * of_line, _mm512_castpd512_pd256(sums));
  _mm256_storeu_pd(reinterpret_cast<double*>(odd_columns) + row * of_line, _mm512_extractf64x4_pd(sums, 1));
}

// A register of B as its four rows, in the order of load_row(): transposes the four lines of even columns in the lower
// halves of vectors, those of odd columns in the upper ones.
WIDE_INLINE void load_rows_of_b(const uint32_t* lanes, __m512d (&b)[of_line]) {
  const __m512i lower = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0),
                upper = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
  __m512d lines[of_line];
#pragma GCC unroll 4
  for (unsigned i = 0; i < of_line; ++i)
    lines[i] = load_doubles(lanes, i);
  const __m512d even0 = _mm512_unpacklo_pd(lines[0], lines[1]), odd0 = _mm512_unpackhi_pd(lines[0], lines[1]);
  const __m512d even1 = _mm512_unpacklo_pd(lines[2], lines[3]), odd1 = _mm512_unpackhi_pd(lines[2], lines[3]);
  b[0] = _mm512_permutex2var_pd(even0, lower, even1);
  b[1] = _mm512_permutex2var_pd(odd0, lower, odd1);
  b[2] = _mm512_permutex2var_pd(even0, upper, even1);
  b[3] = _mm512_permutex2var_pd(odd0, upper, odd1);
}

template <unsigned parts, int rounding>
[[WIDE_TARGET]] bool multiply_sixteen_rows(const WideMethod&, const WideOperands& operands) {
  constexpr unsigned blocks = 2, all_rows = blocks * rows_of_block;
  __m512d sums[all_rows];
#pragma GCC unroll 16
  for (unsigned row = 0; row < all_rows; ++row) {
    const unsigned block = row / rows_of_block;
    sums[row] = load_row(operands.c[2 * block], operands.c[2 * block + 1], row % rows_of_block);
  }
#pragma GCC unroll 4
  for (unsigned part = 0; part < parts; ++part) {
    __m512d b[of_line];
    load_rows_of_b(operands.b[part], b);
#pragma GCC unroll 2
    for (unsigned group = 0; group < all_rows; group += rows_of_block)
#pragma GCC unroll 4
      for (unsigned i = 0; i < of_line; ++i)
#pragma GCC unroll 8
        for (unsigned row_of_group = 0; row_of_group < rows_of_block; ++row_of_group) {
          const unsigned row = group + row_of_group;
          const auto* a = reinterpret_cast<const double*>(operands.a[part * blocks + row / rows_of_block]);
          sums[row] = multiply_add<rounding>(_mm512_set1_pd(a[row % rows_of_block * of_line + i]), b[i], sums[row]);
        }
  }
  __mmask8 has_nan = 0;
#pragma GCC unroll 8
  for (unsigned row = 0; row < all_rows; row += 2)
    has_nan |= _mm512_cmp_pd_mask(sums[row], sums[row + 1], _CMP_UNORD_Q);
  if (has_nan) return false;
#pragma GCC unroll 2
  for (unsigned block = 0; block < blocks; ++block) {
    uint32_t *even_columns = operands.d[2 * block], *odd_columns = operands.d[2 * block + 1];
#pragma GCC unroll 8
    for (unsigned row = 0; row < rows_of_block; ++row)
      store_row(even_columns, odd_columns, row, sums[block * rows_of_block + row]);
  }
  return true;
}

template <template <int> class Run> WideRun run_of_rounding(int rounding) {
  switch (rounding) {
  case FE_TOWARDZERO:
    return Run<_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC>::run;
  case FE_DOWNWARD:
    return Run<_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC>::run;
  case FE_UPWARD:
    return Run<_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC>::run;
  default:
    return Run<to_nearest>::run;
  }
}
template <bool is_packed> struct EightRows {
  template <int rounding> struct Rounded { static constexpr WideRun run = &multiply_eight_rows<is_packed, rounding>; };
};
template <unsigned parts> struct SixteenRows {
  template <int rounding> struct Rounded { static constexpr WideRun run = &multiply_sixteen_rows<parts, rounding>; };
};

} // namespace

WideRun wide_doubles_run(const WideForm& form) {
  if (form.n != columns || form.sparse) return nullptr;
  if (form.m == rows_of_block) {
    if (form.k != of_line) return nullptr;
    return form.is_packed ? run_of_rounding<EightRows<true>::Rounded>(form.rounding)
                          : run_of_rounding<EightRows<false>::Rounded>(form.rounding);
  }
  if (form.m != 2 * rows_of_block || form.is_packed) return nullptr;
  switch (form.k / of_line) {
  case 1:
    return run_of_rounding<SixteenRows<1>::Rounded>(form.rounding);
  case 2:
    return run_of_rounding<SixteenRows<2>::Rounded>(form.rounding);
  case 4:
    return run_of_rounding<SixteenRows<4>::Rounded>(form.rounding);
  default:
    return nullptr;
  }
}

#endif

} // namespace ptxrewrite::emulator
