// Vectors of AVX-512 with numbers of matrices: shared by the products of wide_product.h. Empty on other hosts'
// compilers. Functions have the instructions' target, whatever -march is; they are only called where the host has them.
#pragma once

#include "emulator/tiles/wide_product.h"

#if defined(__x86_64__)
#define PTXREWRITE_WIDE_PRODUCTS 1

#include <array>
#include <immintrin.h>

#define WIDE_TARGET gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,f16c,fma")
#define WIDE_INLINE [[WIDE_TARGET, gnu::always_inline]] inline

// GCC 12 takes the undefined vectors inside of the intrinsics for uninitialized variables.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ptxrewrite::emulator {

bool host_has_wide_products(); // the instructions of WIDE_TARGET

using WideRun = decltype(WideMethod::run);
// nullptr: none.
WideRun wide_packed_run(const WideForm& form);  // wmma
WideRun wide_doubles_run(const WideForm& form); // f64
WideRun wide_quads_run(const WideForm& form);   // m8n8k4 of f16
WideRun wide_integers_run(const WideForm& form);
WideRun wide_scaled_codes_run(const WideForm& form); // 4 bits, with several scales in a row
const WideGroup* wide_group(const WideForm& form);   // without scales

// Number of registers with lines of 16 bytes that hold a row of A.
inline unsigned parts_of(const WideForm& form) {
  const unsigned bits = form.in_containers ? 8 : ir::bit_width(form.a_type);
  return form.k / (form.sparse ? 2 : 1) * bits / 128;
}

// bf16 numbers, which represent the values of all types of at most 8 bits, for the lower seven bits of a code: their
// low bytes, then their high ones.
struct CodeTable {
  alignas(64) std::array<uint8_t, 128> low, high;
  uint8_t sign; // bit of the code that is the sign but not one of the seven
};

namespace wide {

// --- vectors of rows ---
//
// A vector holds one 32-bit word of each of the sixteen rows: in element 4 * i + j of the vector the word of row
// 4 * j + i, an order that both directions of transpose_words() give.

constexpr unsigned rows = 16, columns = 8, words_of_line = 4, words_of_vector = 16;

// Transposes the four by four words in each 16 bytes of four vectors.
WIDE_INLINE void transpose_words(__m512i (&v)[4]) {
  const __m512i low0 = _mm512_unpacklo_epi32(v[0], v[1]), high0 = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i low1 = _mm512_unpacklo_epi32(v[2], v[3]), high1 = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(low0, low1);
  v[1] = _mm512_unpackhi_epi64(low0, low1);
  v[2] = _mm512_unpacklo_epi64(high0, high1);
  v[3] = _mm512_unpackhi_epi64(high0, high1);
}

// Lines 4 * i to 4 * i + 3 in vector i.
WIDE_INLINE void load_lines(const uint32_t* upper_rows, const uint32_t* lower_rows, __m512i (&v)[4]) {
  v[0] = _mm512_loadu_si512(upper_rows);
  v[1] = _mm512_loadu_si512(upper_rows + words_of_vector);
  v[2] = _mm512_loadu_si512(lower_rows);
  v[3] = _mm512_loadu_si512(lower_rows + words_of_vector);
}

WIDE_INLINE void store_lines(uint32_t* upper_rows, uint32_t* lower_rows, const __m512i (&v)[4]) {
  _mm512_storeu_si512(upper_rows, v[0]);
  _mm512_storeu_si512(upper_rows + words_of_vector, v[1]);
  _mm512_storeu_si512(lower_rows, v[2]);
  _mm512_storeu_si512(lower_rows + words_of_vector, v[3]);
}

// --- numbers ---

// Elements of A and B; codes: one in each byte.
enum class Kind : uint8_t { f16, bf16, tf32, codes };

constexpr bool has_pairs(Kind kind) { // of elements in a word, once codes have become bf16
  return kind != Kind::tf32;
}
constexpr unsigned line_of(Kind kind) { // elements in 16 bytes, likewise
  return has_pairs(kind) ? 8 : 4;
}

WIDE_INLINE __m512 from_halves(__m256i halves) {
  return _mm512_cvtph_ps(halves);
}

// The first (or only) and the second element of each word.
template <Kind kind> WIDE_INLINE __m512 even_elements(__m512i words) {
  if constexpr (kind == Kind::f16) return from_halves(_mm512_cvtepi32_epi16(words));
  if constexpr (kind == Kind::tf32)
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffffe000))));
  return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}
template <Kind kind> WIDE_INLINE __m512 odd_elements(__m512i words) {
  if constexpr (kind == Kind::f16) return from_halves(_mm512_cvtepi32_epi16(_mm512_srli_epi32(words, 16)));
  return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}

// From bytes to bf16 in the same order: the lower eight of each sixteen bytes in `lower`.
struct Widened {
  __m512i lower, upper;
};
WIDE_INLINE __m512i look_up(const std::array<uint8_t, 128>& bytes, __m512i codes) {
  return _mm512_permutex2var_epi8(_mm512_load_si512(bytes.data()), codes, _mm512_load_si512(bytes.data() + 64));
}
WIDE_INLINE Widened widen_codes(const CodeTable& table, __m512i codes) {
  const __m512i sign = _mm512_and_si512(codes, _mm512_set1_epi8(static_cast<char>(table.sign)));
  const __m512i low = look_up(table.low, codes), high = _mm512_or_si512(look_up(table.high, codes), sign);
  return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
}

// Lines of codes as lines of bf16: the first eight elements of each in `words`, the last ones in `upper`.
WIDE_INLINE void widen_lines(const CodeTable& table, __m512i (&words)[4], __m512i (&upper)[4]) {
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; ++i) {
    const Widened wide = widen_codes(table, words[i]);
    words[i] = wide.lower;
    upper[i] = wide.upper;
  }
}

// --- B ---
//
// Numbers in memory: line_of() elements of each of the eight columns, then the next ones along k. An element is at
// place_in_b() for all sixteen rows.

template <Kind kind> constexpr unsigned place_in_b(unsigned k, unsigned column) {
  constexpr unsigned line = line_of(kind);
  return k / line * line * columns + column * line + k % line;
}

WIDE_INLINE void store_bf16(__m512i numbers, float* to) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(numbers));
  const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(numbers, 1));
  _mm512_store_si512(to, _mm512_slli_epi32(low, 16));
  _mm512_store_si512(to + words_of_vector, _mm512_slli_epi32(high, 16));
}

// Decodes a register. Sixteen halves are converted straight from memory, which needs no shuffle.
template <Kind kind> WIDE_INLINE void decode_b(const WideMethod& method, const uint32_t* lanes, float* b) {
  constexpr unsigned half = columns / 2 * line_of(kind);
#pragma GCC unroll 2
  for (unsigned i = 0; i < 2; ++i, b += half, lanes += words_of_vector) {
    const __m512i words = _mm512_loadu_si512(lanes);
    if constexpr (kind == Kind::f16) {
      const auto* halves = reinterpret_cast<const __m256i_u*>(lanes);
      _mm512_store_ps(b, from_halves(_mm256_loadu_si256(halves)));
      _mm512_store_ps(b + words_of_vector, from_halves(_mm256_loadu_si256(halves + 1)));
    } else if constexpr (kind == Kind::bf16) {
      store_bf16(words, b);
    } else if constexpr (kind == Kind::tf32) {
      _mm512_store_ps(b, even_elements<kind>(words));
    } else {
      const Widened wide = widen_codes(*method.b_table, words);
      store_bf16(wide.lower, b);
      store_bf16(wide.upper, b + 2 * half);
    }
  }
}

// Makes the compiler read numbers from memory one at a time, which costs nothing: it would otherwise keep them in
// vectors and permute these.
WIDE_INLINE void leave_in_memory(const void* numbers) {
  asm volatile("" : : "r"(numbers) : "memory");
}

// --- integers ---
//
// The instruction multiplies bytes without a sign by bytes with a sign. A is brought to the other kind than B by adding
// or subtracting 128; the sum of B's column times 128 is taken off again.

template <bool b_signed> WIDE_INLINE __m512i add_byte_products(__m512i sums, __m512i a, __m512i b) {
  return b_signed ? _mm512_dpbusd_epi32(sums, a, b) : _mm512_dpbusd_epi32(sums, b, a);
}

// sum + before, clamped to 32 bits: on overflow, the sum's sign differs from both terms'.
WIDE_INLINE __m512i add_clamped(__m512i sum, __m512i before) {
  const __m512i wrapped = _mm512_add_epi32(sum, before);
  const __m512i overflow = _mm512_and_si512(_mm512_xor_si512(wrapped, before), _mm512_xor_si512(wrapped, sum));
  const __m512i limit = _mm512_xor_si512(_mm512_srai_epi32(before, 31), _mm512_set1_epi32(0x7fffffff));
  return _mm512_mask_mov_epi32(wrapped, _mm512_movepi32_mask(overflow), limit);
}

// --- sparse A ---

// Of a vector of rows: the lane that has the first word of each row's metadata, and how far its indices are shifted.
struct PlacesOfMetadata {
  constexpr PlacesOfMetadata() {
    for (unsigned i = 0; i < words_of_vector; ++i) {
      const unsigned row = i % 4 * 4 + i / 4;
      lanes[i] = row % 8 * 4;
      shifts[i] = row / 8 * 16;
    }
  }
  alignas(64) uint32_t lanes[words_of_vector] = {}, shifts[words_of_vector] = {};
};
inline constexpr PlacesOfMetadata places_of_metadata;

// The words of metadata with the indices of each row, in the order of the indices; the upper halves are not for use.
template <unsigned indices> WIDE_INLINE void read_metadata(const WideOperands& operands, __m512i (&metadata)[4]) {
  constexpr unsigned count = indices < 8 ? 1 : indices / 8;
  const __m512i lower = _mm512_loadu_si512(operands.metadata);
  const __m512i upper = _mm512_loadu_si512(operands.metadata + words_of_vector);
  const __m512i lanes = _mm512_load_si512(places_of_metadata.lanes);
  const __m512i shifts = _mm512_load_si512(places_of_metadata.shifts);
#pragma GCC unroll 4
  for (unsigned i = 0; i < count; ++i) {
    const auto lane = static_cast<int>((operands.selector * count + i) % 4);
    const __m512i words = _mm512_permutex2var_epi32(lower, _mm512_add_epi32(lanes, _mm512_set1_epi32(lane)), upper);
    metadata[i] = _mm512_srlv_epi32(words, shifts);
  }
}

// --- results ---

WIDE_INLINE __m512i to_half_words(__m512 sums) {
  const __mmask16 is_nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
  const __m256i halves = _mm512_cvtps_ph(sums, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm512_cvtepu16_epi32(_mm256_mask_mov_epi16(halves, is_nan, _mm256_set1_epi16(0x7fff)));
}
WIDE_INLINE __m512i to_canonical_words(__m512 sums) {
  const __mmask16 is_nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(_mm512_castps_si512(sums), is_nan, _mm512_set1_epi32(0x7fffffff));
}

// Replaces NaNs by the canonical one. Most products have none, so that testing pairs of vectors is all that there is.
template <unsigned count> WIDE_INLINE void make_canonical(__m512 (&sums)[count]) {
  unsigned any = 0;
#pragma GCC unroll 8
  for (unsigned i = 0; i < count; i += 2)
    any |= _mm512_cmp_ps_mask(sums[i], sums[i + 1], _CMP_UNORD_Q);
  if (any == 0) [[likely]]
    return;
#pragma GCC unroll 16
  for (unsigned i = 0; i < count; ++i)
    sums[i] = _mm512_castsi512_ps(to_canonical_words(sums[i]));
}

template <bool half_sums = false> WIDE_INLINE void read_sums(const uint32_t* const* c, __m512 (&sums)[columns]) {
  constexpr unsigned together = half_sums ? 1 : 2; // registers of eight rows
#pragma GCC unroll 2
  for (unsigned i = 0; i < together; ++i) {
    __m512i words[4];
    load_lines(c[i], c[together + i], words);
    transpose_words(words);
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair) {
      if constexpr (half_sums) {
        sums[2 * pair] = even_elements<Kind::f16>(words[pair]);
        sums[2 * pair + 1] = odd_elements<Kind::f16>(words[pair]);
      } else {
        sums[2 * pair + i] = _mm512_castsi512_ps(words[pair]);
      }
    }
  }
}

template <bool half_sums = false> WIDE_INLINE void write_sums(uint32_t* const* d, __m512 (&sums)[columns]) {
  constexpr unsigned together = half_sums ? 1 : 2;
  if constexpr (!half_sums) make_canonical(sums);
#pragma GCC unroll 2
  for (unsigned i = 0; i < together; ++i) {
    __m512i words[4];
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair)
      words[pair] = half_sums ? _mm512_or_si512(to_half_words(sums[2 * pair]),
                                                _mm512_slli_epi32(to_half_words(sums[2 * pair + 1]), 16))
                              : _mm512_castps_si512(sums[2 * pair + i]);
    transpose_words(words);
    store_lines(d[i], d[together + i], words);
  }
}

} // namespace wide
} // namespace ptxrewrite::emulator
#endif
