// mma.sync of f64 by whole warps.
#include "emulator/tiles/wide_vectors.h"

#include <cfenv>

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

constexpr unsigned of_line = 4, block_rows = 8; // elements of a line in a register; rows of a vector

// From lines of four elements, two in each vector, to a vector of eight rows for each element, and the reverse: element
// 4 * i + j of a vector is row 2 * j + i.
WIDE_INLINE void transpose_doubles(__m512d (&v)[4]) {
  const __m512i lower = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0),
                upper = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
  const __m512d even0 = _mm512_unpacklo_pd(v[0], v[1]), odd0 = _mm512_unpackhi_pd(v[0], v[1]);
  const __m512d even1 = _mm512_unpacklo_pd(v[2], v[3]), odd1 = _mm512_unpackhi_pd(v[2], v[3]);
  v[0] = _mm512_permutex2var_pd(even0, lower, even1);
  v[1] = _mm512_permutex2var_pd(odd0, lower, odd1);
  v[2] = _mm512_permutex2var_pd(even0, upper, even1);
  v[3] = _mm512_permutex2var_pd(odd0, upper, odd1);
}

WIDE_INLINE void load_rows(const void* lanes, __m512d (&v)[4]) {
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; ++i)
    v[i] = _mm512_loadu_pd(static_cast<const double*>(lanes) + i * 8);
  transpose_doubles(v);
}

// A NaN's payload depends on the order of an instruction's operands: such products take the general way.
template <unsigned blocks, unsigned parts, int rounding>
[[WIDE_TARGET]] bool multiply_doubles(const WideMethod&, const WideOperands& operands) {
  __m512d sums[blocks][columns];
#pragma GCC unroll 4
  for (unsigned i = 0; i < blocks * 2; ++i) {
    __m512d pairs[4];
    load_rows(operands.c[i], pairs);
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair)
      sums[i / 2][2 * pair + i % 2] = pairs[pair];
  }
#pragma GCC unroll 4
  for (unsigned part = 0; part < parts; ++part) {
    const auto* b = reinterpret_cast<const double*>(operands.b[part]);
#pragma GCC unroll 2
    for (unsigned block = 0; block < blocks; ++block) {
      __m512d a[of_line];
      load_rows(operands.a[part * blocks + block], a);
#pragma GCC unroll 4
      for (unsigned i = 0; i < of_line; ++i)
#pragma GCC unroll 8
        for (unsigned column = 0; column < columns; ++column) {
          __m512d& sum = sums[block][column];
          sum = _mm512_fmadd_round_pd(a[i], _mm512_set1_pd(b[column * of_line + i]), sum, rounding);
        }
    }
  }
  __mmask8 has_nan = 0;
#pragma GCC unroll 16
  for (unsigned i = 0; i < blocks * columns; ++i) {
    const __m512d& sum = sums[i / columns][i % columns];
    has_nan |= _mm512_cmp_pd_mask(sum, sum, _CMP_UNORD_Q);
  }
  if (has_nan) return false;
#pragma GCC unroll 4
  for (unsigned i = 0; i < blocks * 2; ++i) {
    __m512d pairs[4];
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair)
      pairs[pair] = sums[i / 2][2 * pair + i % 2];
    transpose_doubles(pairs);
#pragma GCC unroll 4
    for (unsigned j = 0; j < 4; ++j)
      _mm512_storeu_pd(reinterpret_cast<double*>(operands.d[i]) + j * 8, pairs[j]);
  }
  return true;
}

template <unsigned blocks, unsigned parts> WideRun run_of_rounding(int rounding) {
  switch (rounding) {
  case FE_TOWARDZERO:
    return &multiply_doubles<blocks, parts, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC>;
  case FE_DOWNWARD:
    return &multiply_doubles<blocks, parts, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC>;
  case FE_UPWARD:
    return &multiply_doubles<blocks, parts, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC>;
  default:
    return &multiply_doubles<blocks, parts, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC>;
  }
}

} // namespace

WideRun wide_doubles_run(const WideForm& form) {
  if (form.n != columns || form.sparse) return nullptr;
  if (form.m == block_rows) return form.k == of_line ? run_of_rounding<1, 1>(form.rounding) : nullptr;
  if (form.m != 2 * block_rows) return nullptr;
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
