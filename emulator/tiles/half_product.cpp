#include "emulator/tiles/half_product.h"

#include "emulator/semantics/half_vector.h"
#if defined(PTXREWRITE_HALF_VECTORS) && defined(__FMA__)
#include <immintrin.h>
#define PTXREWRITE_HALF_PRODUCTS 1
#endif

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_HALF_PRODUCTS)
namespace {

constexpr unsigned rows = 16, lanes_of_line = 4, at_once = 8; // rows, columns or elements

__m128i load_line(const uint32_t* lanes, unsigned line) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes + line * lanes_of_line));
}

template <bool is_bf16> __m256 to_floats(__m128i eight) {
  if constexpr (is_bf16) return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
  return _mm256_cvtph_ps(eight);
}

// Columns of B in the order of the sums: all even ones before the odd ones, or as they are.
template <bool in_order> constexpr unsigned column_at(unsigned place) {
  return in_order ? place : place % 4 * 2 + place / 4;
}

// From eight columns of eight elements along k to eight rows of B.
template <bool is_bf16, bool in_order> [[gnu::always_inline]] inline void read_b(const uint32_t* lanes, __m256* b) {
  __m128i in[at_once], pairs[at_once], fours[at_once];
  for (unsigned i = 0; i < at_once; ++i)
    in[i] = load_line(lanes, column_at<in_order>(i));
  for (unsigned i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm_unpacklo_epi16(in[i], in[i + 4]);
    pairs[2 * i + 1] = _mm_unpackhi_epi16(in[i], in[i + 4]);
  }
  for (unsigned i = 0; i < 4; ++i) {
    fours[2 * i] = _mm_unpacklo_epi16(pairs[i], pairs[i + 4]);
    fours[2 * i + 1] = _mm_unpackhi_epi16(pairs[i], pairs[i + 4]);
  }
  for (unsigned i = 0; i < 4; ++i) {
    b[2 * i] = to_floats<is_bf16>(_mm_unpacklo_epi16(fours[i], fours[i + 4]));
    b[2 * i + 1] = to_floats<is_bf16>(_mm_unpackhi_epi16(fours[i], fours[i + 4]));
  }
}

template <bool half_sums>
[[gnu::always_inline]] inline __m256 read_sums(const HalfProduct& product, unsigned block, unsigned line) {
  if constexpr (half_sums) return _mm256_cvtph_ps(load_line(product.c[block], line));
  return _mm256_castsi256_ps(
      _mm256_set_m128i(load_line(product.c[2 * block + 1], line), load_line(product.c[2 * block], line)));
}

void store_line(uint32_t* lanes, unsigned line, __m128i four) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes + line * lanes_of_line), four);
}

template <bool half_sums>
[[gnu::always_inline]] inline void write_sums(const HalfProduct& product, unsigned block, unsigned line, __m256 sums) {
  if constexpr (half_sums) {
    store_line(product.d[block], line, (__m128i)semantics::to_halves((semantics::Floats)sums));
    return;
  }
  const __m256 canonical_nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256 bits = _mm256_blendv_ps(sums, canonical_nan, _mm256_cmp_ps(sums, sums, _CMP_UNORD_Q));
  store_line(product.d[2 * block], line, _mm_castps_si128(_mm256_castps256_ps128(bits)));
  store_line(product.d[2 * block + 1], line, _mm_castps_si128(_mm256_extractf128_ps(bits, 1)));
}

template <bool is_bf16, bool half_sums, unsigned parts> void multiply(const HalfProduct& product) {
  constexpr unsigned k = parts * at_once;
  __m256 b[k], sums[rows];
  alignas(32) float a[rows * k];
  for (unsigned part = 0; part < parts; ++part) {
    read_b<is_bf16, half_sums>(product.b[part], b + part * at_once);
    for (unsigned row = 0; row < rows; ++row)
      _mm256_store_ps(a + row * k + part * at_once,
                      to_floats<is_bf16>(load_line(product.a[part * 2 + row / at_once], row % at_once)));
  }
  for (unsigned row = 0; row < rows; ++row)
    sums[row] = read_sums<half_sums>(product, row / at_once, row % at_once);
  for (unsigned block = 0; block < rows / at_once; ++block) { // eight sums stay in registers
    __m256* const of_block = sums + block * at_once;
    const float* left = a + block * at_once * k;
    __m256 part[at_once];
    for (unsigned row = 0; row < at_once; ++row)
      part[row] = of_block[row];
#pragma GCC unroll 4
    for (unsigned i = 0; i < k; ++i)
      for (unsigned row = 0; row < at_once; ++row)
        part[row] = _mm256_fmadd_ps(_mm256_broadcast_ss(left + row * k + i), b[i], part[row]);
    for (unsigned row = 0; row < at_once; ++row)
      of_block[row] = part[row];
  }
  for (unsigned row = 0; row < rows; ++row)
    write_sums<half_sums>(product, row / at_once, row % at_once, sums[row]);
}

template <bool is_bf16, bool half_sums> void multiply_parts(const HalfProduct& product) {
  product.parts == 1 ? multiply<is_bf16, half_sums, 1>(product) : multiply<is_bf16, half_sums, 2>(product);
}

} // namespace

bool multiply_halves(const HalfProduct& product) {
  if (product.has_half_sums)
    product.is_bf16 ? multiply_parts<true, true>(product) : multiply_parts<false, true>(product);
  else
    product.is_bf16 ? multiply_parts<true, false>(product) : multiply_parts<false, false>(product);
  return true;
}

#else

bool multiply_halves(const HalfProduct&) {
  return false;
}

#endif

} // namespace ptxrewrite::emulator
