// The four products of mma.sync.m8n8k4 of f16, each of which is held by a quad of lanes below 16 and one above (PTX ISA
// 9.7.14.5.1). A vector holds a word of sixteen lanes, so that a quad is 16 bytes of it: a lower quad has rows 0 to 3
// of A and columns 0 to 3 of B, an upper one the others.
#include "emulator/tiles/wide_vectors.h"

#include <cstring>

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

constexpr unsigned halves_of_warp = 2, k_count = 4;

// For each of four lanes of a quad, the lane whose element it gets: two bits each, as instructions have it.
constexpr unsigned own_lane = 0xe4, lanes_0101 = 0x44, lanes_2323 = 0xee, lanes_0022 = 0xa0, lanes_1133 = 0xf5;
constexpr unsigned all_of(unsigned lane) {
  return lane * 0x55;
}

// Places among the numbers of sixteen lanes that have two each: those of element `element` in the chosen lanes.
template <unsigned choice, unsigned element> struct PlacesOfChoice {
  static constexpr std::array<int, words_of_vector> make() {
    std::array<int, words_of_vector> places = {};
    for (unsigned lane = 0; lane < places.size(); ++lane)
      places[lane] = static_cast<int>((lane / 4 * 4 + (choice >> lane % 4 * 2 & 3)) * 2 + element);
    return places;
  }
  alignas(64) static constexpr std::array<int, words_of_vector> places = make();
};

// A or B: each lane holds a row of A, or a column of B, along k. Halves are converted straight from memory, which needs
// no shuffle, and shuffled when they are chosen.
struct LinesOfLanes {
  [[WIDE_TARGET, gnu::always_inline]] explicit LinesOfLanes(const uint32_t* const* registers) {
#pragma GCC unroll 8
    for (unsigned i = 0; i < 8; ++i) {
      const uint32_t* from = registers[i / 2 % 2] + i / 4 * words_of_vector + i % 2 * words_of_vector / 2;
      numbers[i / 4][i / 2 % 2][i % 2] = from_halves(_mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(from)));
    }
  }
  template <unsigned choice, unsigned k> WIDE_INLINE __m512 chosen(unsigned half) const {
    const __m512i places = _mm512_load_si512(PlacesOfChoice<choice, k % 2>::places.data());
    return _mm512_permutex2var_ps(numbers[half][k / 2][0], places, numbers[half][k / 2][1]);
  }

  __m512 numbers[halves_of_warp][2][2]; // of the first and the last eight lanes of a half
};

// The other layouts: each lane holds elements of different rows or columns at its own place along k.
struct LanesAlongK {
  [[WIDE_TARGET, gnu::always_inline]] explicit LanesAlongK(const uint32_t* const* registers) {
#pragma GCC unroll 2
    for (unsigned half = 0; half < halves_of_warp; ++half) {
      __m512i elements[k_count];
#pragma GCC unroll 2
      for (unsigned pair = 0; pair < 2; ++pair) {
        const __m512i words = _mm512_loadu_si512(registers[pair] + half * words_of_vector);
        elements[2 * pair] = _mm512_castps_si512(even_elements<Kind::f16>(words));
        elements[2 * pair + 1] = _mm512_castps_si512(odd_elements<Kind::f16>(words));
      }
      transpose_words(elements);
#pragma GCC unroll 4
      for (unsigned k = 0; k < k_count; ++k)
        numbers[half][k] = _mm512_castsi512_ps(elements[k]);
    }
  }
  template <unsigned choice, unsigned k> WIDE_INLINE __m512 chosen(unsigned half) const {
    return _mm512_permute_ps(numbers[half][k], choice);
  }

  __m512 numbers[halves_of_warp][k_count];
};

// The elements along k of the chosen lanes.
template <unsigned choice, class Factor>
WIDE_INLINE void choose(const Factor& factor, unsigned half, __m512 (&elements)[k_count]) {
  elements[0] = factor.template chosen<choice, 0>(half);
  elements[1] = factor.template chosen<choice, 1>(half);
  elements[2] = factor.template chosen<choice, 2>(half);
  elements[3] = factor.template chosen<choice, 3>(half);
}

// Sums of f32: register `i` has row lane % 2 + (i & 2) and column (i & 4) + (lane & 2) + (i & 1) of the lane's quad.
template <class FactorA, class FactorB>
[[WIDE_TARGET]] bool multiply_quads(const WideMethod&, const WideOperands& operands) {
  const FactorA a(operands.a);
  const FactorB b(operands.b);
  __m512 even[halves_of_warp][k_count], odd[halves_of_warp][k_count];
#pragma GCC unroll 2
  for (unsigned half = 0; half < halves_of_warp; ++half) {
    choose<lanes_0022>(b, half, even[half]);
    choose<lanes_1133>(b, half, odd[half]);
  }
#pragma GCC unroll 2
  for (unsigned half = 0; half < halves_of_warp; ++half) {
    __m512 lower[k_count], upper[k_count], sums[columns];
    choose<lanes_0101>(a, half, lower);
    choose<lanes_2323>(a, half, upper);
#pragma GCC unroll 8
    for (unsigned i = 0; i < columns; ++i)
      sums[i] = _mm512_loadu_ps(operands.c[i] + half * words_of_vector);
#pragma GCC unroll 4
    for (unsigned k = 0; k < k_count; ++k)
#pragma GCC unroll 8
      for (unsigned i = 0; i < columns; ++i)
        sums[i] = _mm512_fmadd_ps(i & 2 ? upper[k] : lower[k], i & 1 ? odd[i / 4][k] : even[i / 4][k], sums[i]);
    make_canonical(sums);
#pragma GCC unroll 8
    for (unsigned i = 0; i < columns; ++i)
      _mm512_storeu_ps(operands.d[i] + half * words_of_vector, sums[i]);
  }
  return true;
}

WIDE_INLINE __m512 add_products(const __m512 (&a)[k_count], const __m512 (&b)[k_count], __m512 sums) {
#pragma GCC unroll 4
  for (unsigned k = 0; k < k_count; ++k)
    sums = _mm512_fmadd_ps(a[k], b[k], sums);
  return sums;
}

// Sums of f16: a lane has one row; register `pair` has columns 2 * pair and 2 * pair + 1.
template <unsigned pair, class Factor>
WIDE_INLINE void multiply_pair(const WideOperands& operands, const __m512 (&a)[halves_of_warp][k_count],
                               const Factor& b, uint32_t (&results)[halves_of_warp][words_of_vector]) {
  __m512 first[k_count], second[k_count];
  choose<all_of(2 * pair % 4)>(b, pair / 2, first);
  choose<all_of(2 * pair % 4 + 1)>(b, pair / 2, second);
#pragma GCC unroll 2
  for (unsigned half = 0; half < halves_of_warp; ++half) {
    const __m512i words = _mm512_loadu_si512(operands.c[pair] + half * words_of_vector);
    const __m512i even = to_half_words(add_products(a[half], first, even_elements<Kind::f16>(words)));
    const __m512i odd = to_half_words(add_products(a[half], second, odd_elements<Kind::f16>(words)));
    _mm512_storeu_si512(results[half], _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
  }
}

template <class FactorA, class FactorB>
[[WIDE_TARGET]] bool multiply_half_quads(const WideMethod&, const WideOperands& operands) {
  const FactorA a_of_lanes(operands.a);
  const FactorB b(operands.b);
  __m512 a[halves_of_warp][k_count];
  choose<own_lane>(a_of_lanes, 0, a[0]);
  choose<own_lane>(a_of_lanes, 1, a[1]);
  uint32_t results[4][halves_of_warp][words_of_vector]; // D may be registers of C in another order
  multiply_pair<0>(operands, a, b, results[0]);
  multiply_pair<1>(operands, a, b, results[1]);
  multiply_pair<2>(operands, a, b, results[2]);
  multiply_pair<3>(operands, a, b, results[3]);
  for (unsigned i = 0; i < 4; ++i)
    std::memcpy(operands.d[i], results[i], sizeof results[i]);
  return true;
}

template <class FactorA, class FactorB> WideRun run_of_factors(const WideForm& form) {
  return form.has_half_sums ? &multiply_half_quads<FactorA, FactorB> : &multiply_quads<FactorA, FactorB>;
}
template <class FactorA> WideRun run_of_factor(const WideForm& form) {
  return form.b_in_rows ? run_of_factors<FactorA, LanesAlongK>(form) : run_of_factors<FactorA, LinesOfLanes>(form);
}

} // namespace

WideRun wide_quads_run(const WideForm& form) {
  if (form.a_type != ir::ScalarType::f16 || form.saturates) return nullptr;
  return form.a_in_columns ? run_of_factor<LanesAlongK>(form) : run_of_factor<LinesOfLanes>(form);
}

#endif

} // namespace ptxrewrite::emulator
