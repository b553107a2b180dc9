// Products with the columns of D in adjacent lanes of tensor memory by AVX-512: sixteen rows of D are a vector.
#include "emulator/tiles/wide_vectors.h"

#include "emulator/tiles/wide_lanes.h"

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

WIDE_INLINE void load_columns(const float* d, size_t distance, __m512 (&sums)[columns]) {
#pragma GCC unroll 8
  for (unsigned i = 0; i < columns; ++i)
    sums[i] = _mm512_loadu_ps(d + i * distance);
}
WIDE_INLINE void store_columns(float* d, size_t distance, __m512 (&sums)[columns]) {
  make_canonical(sums);
#pragma GCC unroll 8
  for (unsigned i = 0; i < columns; ++i)
    _mm512_storeu_ps(d + i * distance, sums[i]);
}

template <unsigned k> [[WIDE_TARGET]] void multiply_dense(const LanesProduct& product, float* d, size_t distance) {
  __m512 sums[columns];
  load_columns(d, distance, sums);
#pragma GCC unroll 4
  for (unsigned step = 0; step < k; ++step) {
    const __m512 a = _mm512_load_ps(product.a + step * rows);
#pragma GCC unroll 8
    for (unsigned i = 0; i < columns; ++i)
      sums[i] = _mm512_fmadd_ps(a, _mm512_set1_ps(product.b[i * k + step]), sums[i]);
  }
  store_columns(d, distance, sums);
}

template <unsigned stored>
[[WIDE_TARGET]] void multiply_sparse(const LanesProduct& product, float* d, size_t distance) {
  constexpr unsigned k = 2 * stored;
  __m512 sums[columns];
  load_columns(d, distance, sums);
#pragma GCC unroll 4
  for (unsigned step = 0; step < stored; ++step) {
    const unsigned first = step / 8 * words_of_vector; // column of A
    const __m512 a = _mm512_load_ps(product.a + step * rows);
    const __m512i places = _mm512_load_si512(product.places + step * rows);
#pragma GCC unroll 8
    for (unsigned i = 0; i < columns; ++i) {
      const __m512 sixteen = _mm512_loadu_ps(product.b + i * k + first);
      sums[i] = _mm512_fmadd_ps(a, _mm512_permutexvar_ps(places, sixteen), sums[i]);
    }
  }
  store_columns(d, distance, sums);
}

} // namespace

LanesMethod lanes_method(bool sparse, unsigned stored) {
  if (!host_has_wide_products()) return nullptr;
  switch (stored) {
  case 8:
    return sparse ? &multiply_sparse<8> : &multiply_dense<8>;
  case 16:
    return sparse ? &multiply_sparse<16> : &multiply_dense<16>;
  case 32:
    return sparse ? &multiply_sparse<32> : &multiply_dense<32>;
  case 64:
    return sparse ? nullptr : &multiply_dense<64>;
  default:
    return nullptr;
  }
}

#else

LanesMethod lanes_method(bool, unsigned) {
  return nullptr;
}

#endif

} // namespace ptxrewrite::emulator
