// mma.sync and wmma.mma of f64 by whole warps. The packed A, C and D of wmma.m8n8k4 lie as mma's do.
#include "emulator/tiles/wide_vectors.h"

#include <cfenv>

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

constexpr unsigned of_line = 4, rows_of_block = 8; // elements of a line, which a row of A and a column of B have in a
                                                   // register; rows of a register

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
WIDE_INLINE void load_b(const uint32_t* lanes, __m512d (&b)[of_line]) {
  const __m512i lower = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0),
                upper = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
  __m512d lines[of_line];
#pragma GCC unroll 4
  for (unsigned i = 0; i < of_line; ++i)
    lines[i] = _mm512_loadu_pd(reinterpret_cast<const double*>(lanes) + i * 2 * of_line);
  const __m512d even0 = _mm512_unpacklo_pd(lines[0], lines[1]), odd0 = _mm512_unpackhi_pd(lines[0], lines[1]);
  const __m512d even1 = _mm512_unpacklo_pd(lines[2], lines[3]), odd1 = _mm512_unpackhi_pd(lines[2], lines[3]);
  b[0] = _mm512_permutex2var_pd(even0, lower, even1);
  b[1] = _mm512_permutex2var_pd(odd0, lower, odd1);
  b[2] = _mm512_permutex2var_pd(even0, upper, even1);
  b[3] = _mm512_permutex2var_pd(odd0, upper, odd1);
}

// wmma: B is packed, a row behind the other.
WIDE_INLINE void load_packed_b(const uint32_t* lanes, __m512d (&b)[of_line]) {
  const __m512i even_columns_first = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
#pragma GCC unroll 4
  for (unsigned i = 0; i < of_line; ++i)
    b[i] = _mm512_permutexvar_pd(even_columns_first,
                                 _mm512_loadu_pd(reinterpret_cast<const double*>(lanes) + i * columns));
}

constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// The host rounds to nearest unless told otherwise, and then reads `a` in the same instruction.
template <int rounding> WIDE_INLINE __m512d multiply_add(double a, __m512d b, __m512d sums) {
  if constexpr (rounding == to_nearest) return _mm512_fmadd_pd(_mm512_set1_pd(a), b, sums);
  return _mm512_fmadd_round_pd(_mm512_set1_pd(a), b, sums, rounding);
}

// Rows that are multiplied together: enough for the processor's multipliers. Where the first ones of an instruction are
// finished while the last ones are multiplied, the next instruction on the same sums need not wait.
template <unsigned blocks> constexpr unsigned rows_together = blocks == 1 ? 4 : 8;

// A NaN's payload depends on the order of an instruction's operands: such products take the general way.
template <unsigned blocks, unsigned parts, bool is_packed, int rounding>
[[WIDE_TARGET]] bool multiply_doubles(const WideMethod&, const WideOperands& operands) {
  constexpr unsigned all_rows = blocks * rows_of_block;
  __m512d sums[all_rows];
#pragma GCC unroll 16
  for (unsigned row = 0; row < all_rows; ++row) {
    const unsigned block = row / rows_of_block;
    sums[row] = load_row(operands.c[2 * block], operands.c[2 * block + 1], row % rows_of_block);
  }
#pragma GCC unroll 4
  for (unsigned part = 0; part < parts; ++part) {
    __m512d b[of_line];
    is_packed ? load_packed_b(operands.b[part], b) : load_b(operands.b[part], b);
#pragma GCC unroll 2
    for (unsigned group = 0; group < all_rows; group += rows_together<blocks>)
#pragma GCC unroll 4
      for (unsigned i = 0; i < of_line; ++i)
#pragma GCC unroll 8
        for (unsigned row_of_group = 0; row_of_group < rows_together<blocks>; ++row_of_group) {
          const unsigned row = group + row_of_group;
          const auto* a = reinterpret_cast<const double*>(operands.a[part * blocks + row / rows_of_block]);
          sums[row] = multiply_add<rounding>(a[row % rows_of_block * of_line + i], b[i], sums[row]);
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

template <unsigned blocks, unsigned parts, bool is_packed = false> WideRun run_of_rounding(int rounding) {
  switch (rounding) {
  case FE_TOWARDZERO:
    return &multiply_doubles<blocks, parts, is_packed, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC>;
  case FE_DOWNWARD:
    return &multiply_doubles<blocks, parts, is_packed, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC>;
  case FE_UPWARD:
    return &multiply_doubles<blocks, parts, is_packed, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC>;
  default:
    return &multiply_doubles<blocks, parts, is_packed, to_nearest>;
  }
}

} // namespace

WideRun wide_doubles_run(const WideForm& form) {
  if (form.n != columns || form.sparse) return nullptr;
  if (form.m == rows_of_block) {
    if (form.k != of_line) return nullptr;
    return form.is_packed ? run_of_rounding<1, 1, true>(form.rounding) : run_of_rounding<1, 1>(form.rounding);
  }
  if (form.m != 2 * rows_of_block || form.is_packed) return nullptr;
  switch (form.k / of_line) {
  case 1:
    return run_of_rounding<2, 1>(form.rounding);
  case 2:
    return run_of_rounding<2, 2>(form.rounding);
  case 4:
    return run_of_rounding<2, 4>(form.rounding);
  default:
    return nullptr;
  }
}

#endif

} // namespace ptxrewrite::emulator
