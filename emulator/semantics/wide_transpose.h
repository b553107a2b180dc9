// Transposes a matrix of eight rows of eight 16-bit elements by AVX-512 (ldmatrix and stmatrix with .trans).
#pragma once

#include "emulator/semantics/host_vectors.h"

#if defined(__x86_64__)
#define PTXREWRITE_WIDE_TRANSPOSE 1

#include <array>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

// GCC 12 takes the undefined vectors inside of the intrinsics for uninitialized variables.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ptxrewrite::emulator::semantics {

namespace detail {
// Places of the transposed matrix's elements, row by row.
constexpr std::array<uint16_t, 64> transposed_places() {
  std::array<uint16_t, 64> places{};
  for (unsigned i = 0; i < places.size(); ++i)
    places[i] = static_cast<uint16_t>(i % 8 * 8 + i / 8);
  return places;
}
} // namespace detail

// The rows are at base + offsets[row]. columns: receives the columns, 16 bytes each.
[[gnu::target("avx512f,avx512bw")]] inline void wide_transpose(const std::byte* base, const uint32_t* offsets,
                                                               uint32_t* columns) {
  alignas(64) static constexpr auto places = detail::transposed_places();
  __m512i halves[2];
  for (unsigned i = 0; i < 2; ++i) {
    __m128i lines[4];
    for (unsigned k = 0; k < 4; ++k)
      lines[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(base + offsets[4 * i + k]));
    halves[i] = _mm512_castsi128_si512(lines[0]);
    halves[i] = _mm512_inserti32x4(halves[i], lines[1], 1);
    halves[i] = _mm512_inserti32x4(halves[i], lines[2], 2);
    halves[i] = _mm512_inserti32x4(halves[i], lines[3], 3);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const __m512i from = _mm512_load_si512(places.data() + 32 * i);
    _mm512_storeu_si512(columns + 16 * i, _mm512_permutex2var_epi16(halves[0], from, halves[1]));
  }
}

} // namespace ptxrewrite::emulator::semantics

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
