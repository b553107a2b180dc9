// sin.approx and cos.approx of all lanes of a warp by AVX-512, with the bits of approximate.h. Four vectors take each
// step together, because a single one would wait for the latency of its chain of multiply-adds.
#pragma once

#include "emulator/semantics/approximate.h"
#include "emulator/semantics/host_vectors.h"

#if defined(__x86_64__)
#define PTXREWRITE_WIDE_SINE 1

#include <immintrin.h>

// GCC 12 takes the undefined vectors inside of the intrinsics for uninitialized variables.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ptxrewrite::emulator::semantics {

enum class Wave : uint8_t { sine, cosine };

namespace detail {

inline constexpr unsigned wide_groups = 4; // of eight lanes

struct WideDoubles {
  __m512d group[wide_groups];
};

// detail::turns() of all lanes, from the first three pieces of 1 / (2 pi). The other products do not change a sum if
// they are below a quarter of its last place: |x| * 2^-89 < |sum| * 2^-55. Returns false if a lane's may, and for
// angles of many turns, infinities and NaN.
[[gnu::target("avx512f"), gnu::always_inline]] inline bool wide_turns(const WideDoubles& x, WideDoubles& turns) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m512d least = _mm512_set1_pd(0x1p-34);
  __mmask8 good = 0xff;
  for (unsigned i = 0; i < wide_groups; ++i) {
    const __m512d first = _mm512_mul_pd(x.group[i], _mm512_set1_pd(inverse_circle[0]));
    turns.group[i] = _mm512_sub_pd(first, _mm512_roundscale_pd(first, nearest));
  }
  for (unsigned piece = 1; piece < 3; ++piece)
    for (unsigned i = 0; i < wide_groups; ++i)
      turns.group[i] = _mm512_fmadd_pd(x.group[i], _mm512_set1_pd(inverse_circle[piece]), turns.group[i]);
  for (unsigned i = 0; i < wide_groups; ++i) {
    const __m512d product = _mm512_mul_pd(_mm512_abs_pd(x.group[i]), least);
    good &= _mm512_cmp_pd_mask(_mm512_abs_pd(turns.group[i]), product, _CMP_GE_OQ);
  }
  return good == 0xff;
}

// detail::sine_of_turns() of all lanes. An even number of half turns more, as wide_turns() leaves, changes no bit.
[[gnu::target("avx512f,avx512dq"), gnu::always_inline]] inline void wide_sine_of_turns(WideDoubles& turns) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  constexpr auto series = sine_series<11>(6.28318530717958647693);
  WideDoubles rest, square, sum;
  __m512i sign[wide_groups];
  for (unsigned i = 0; i < wide_groups; ++i) {
    const __m512d half_turns = _mm512_roundscale_pd(_mm512_add_pd(turns.group[i], turns.group[i]), nearest);
    rest.group[i] = _mm512_fnmadd_pd(half_turns, _mm512_set1_pd(0.5), turns.group[i]); // the product is exact
    square.group[i] = _mm512_mul_pd(rest.group[i], rest.group[i]);
    const __mmask8 odd = _mm512_cmp_pd_mask(_mm512_abs_pd(half_turns), _mm512_set1_pd(1), _CMP_EQ_OQ);
    sign[i] = _mm512_maskz_set1_epi64(odd, INT64_MIN);
    sum.group[i] = _mm512_set1_pd(series[series.size() - 1]);
  }
#pragma GCC unroll 16
  for (std::size_t k = series.size() - 1; k > 0; --k)
    for (unsigned i = 0; i < wide_groups; ++i)
      sum.group[i] = _mm512_fmadd_pd(sum.group[i], square.group[i], _mm512_set1_pd(series[k - 1]));
  for (unsigned i = 0; i < wide_groups; ++i)
    turns.group[i] = _mm512_xor_pd(_mm512_mul_pd(rest.group[i], sum.group[i]), _mm512_castsi512_pd(sign[i]));
}

} // namespace detail

// Subnormal numbers as zeros of their sign.
[[gnu::target("avx512f,avx512dq"), gnu::always_inline]] inline __m512 wide_flushed(__m512 x) {
  const __mmask16 is_small = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(0x1p-126f), _CMP_LT_OQ);
  return _mm512_mask_and_ps(x, is_small, x, _mm512_set1_ps(-0.0f));
}

// results[lane] = sin_approx<flush>(x[lane]) or cos_approx, for 32 lanes. Returns false, and writes nothing, if a lane
// needs the general way. results: may be x.
template <Wave wave, bool flush>
[[gnu::target("avx512f,avx512dq")]] inline bool wide_wave(const float* x, float* results) {
  __m512 angles[2];
  detail::WideDoubles numbers, turns;
  __mmask16 few = 0xffff;
  for (unsigned half = 0; half < 2; ++half) {
    angles[half] = _mm512_loadu_ps(x + 16 * half);
    few &= _mm512_cmp_ps_mask(_mm512_abs_ps(angles[half]), _mm512_set1_ps(detail::few_turns), _CMP_LT_OQ);
    numbers.group[2 * half] = _mm512_cvtps_pd(_mm512_castps512_ps256(angles[half]));
    numbers.group[2 * half + 1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(angles[half], 1));
  }
  const bool is_known = detail::wide_turns(numbers, turns);
  if (few != 0xffff || !is_known) return false; // NaN and infinities are not few
  if constexpr (wave == Wave::cosine) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    for (__m512d& group : turns.group)
      group = _mm512_add_pd(_mm512_sub_pd(group, _mm512_roundscale_pd(group, nearest)), _mm512_set1_pd(0.25));
  }
  detail::wide_sine_of_turns(turns);
  for (unsigned half = 0; half < 2; ++half) {
    __m512 values = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(turns.group[2 * half])),
                                       _mm512_cvtpd_ps(turns.group[2 * half + 1]), 1);
    if constexpr (flush) values = wide_flushed(values);
    if constexpr (wave == Wave::sine) {
      const __m512 tiny = _mm512_set1_ps(detail::tiny_angle);
      const __mmask16 is_tiny = _mm512_cmp_ps_mask(_mm512_abs_ps(angles[half]), tiny, _CMP_LT_OQ);
      values = _mm512_mask_mov_ps(values, is_tiny, wide_flushed(angles[half])); // the cosine of a subnormal number is 1
    }
    _mm512_storeu_ps(results + 16 * half, values);
  }
  return true;
}

} // namespace ptxrewrite::emulator::semantics

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
