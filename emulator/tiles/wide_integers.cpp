// mma.sync of integers by whole warps.
//
// The instruction multiplies bytes without a sign by bytes with a sign. A is brought to the other kind than B by adding
// or subtracting 128; the sum of B's column times 128 is taken off again.
#include "emulator/tiles/wide_vectors.h"

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using namespace wide;

// From 4 bits to bytes: elements in the low halves of bytes, then those in the high halves.
WIDE_INLINE __m512i expand_nibbles(__m512i words, bool high, bool is_signed) {
  const __m512i half = _mm512_and_si512(high ? _mm512_srli_epi16(words, 4) : words, _mm512_set1_epi8(15));
  const __m512i sign = _mm512_set1_epi8(is_signed ? 8 : 0);
  return _mm512_sub_epi8(_mm512_xor_si512(half, sign), sign);
}

template <bool b_signed> WIDE_INLINE __m512i add_byte_products(__m512i sums, __m512i a, __m512i b) {
  return b_signed ? _mm512_dpbusd_epi32(sums, a, b) : _mm512_dpbusd_epi32(sums, b, a);
}

// The number to add to the sums of a column, at corrections[4 * column].
template <bool b_signed, unsigned parts>
WIDE_INLINE void correct_columns(const uint32_t* const* b, uint32_t* corrections) {
#pragma GCC unroll 2
  for (unsigned half = 0; half < 2; ++half) {
    __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (unsigned part = 0; part < parts; ++part)
      sums =
          add_byte_products<b_signed>(sums, _mm512_set1_epi8(1), _mm512_loadu_si512(b[part] + half * words_of_vector));
    sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
    sums = _mm512_slli_epi32(_mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB)), 7);
    if constexpr (b_signed) sums = _mm512_sub_epi32(_mm512_setzero_si512(), sums);
    _mm512_store_si512(corrections + half * words_of_vector, sums);
  }
}

// sum + before, clamped to 32 bits: on overflow, the sum's sign differs from both terms'.
WIDE_INLINE __m512i add_clamped(__m512i sum, __m512i before) {
  const __m512i wrapped = _mm512_add_epi32(sum, before);
  const __m512i overflow = _mm512_and_si512(_mm512_xor_si512(wrapped, before), _mm512_xor_si512(wrapped, sum));
  const __m512i limit = _mm512_xor_si512(_mm512_srai_epi32(before, 31), _mm512_set1_epi32(0x7fffffff));
  return _mm512_mask_mov_epi32(wrapped, _mm512_movepi32_mask(overflow), limit);
}

template <bool b_signed, bool nibbles, unsigned parts>
[[WIDE_TARGET]] bool multiply_integers(const WideMethod& method, const WideOperands& operands) {
  constexpr unsigned of_part = nibbles ? 2 : 1, byte_parts = parts * of_part;
  alignas(64) uint32_t expanded[nibbles ? byte_parts : 1][words_of_line * columns];
  const uint32_t* b[byte_parts];
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    if constexpr (nibbles) {
#pragma GCC unroll 4
      for (unsigned i = 0; i < 4; ++i) {
        const __m512i words = _mm512_loadu_si512(operands.b[part] + i / 2 * words_of_vector);
        _mm512_store_si512(expanded[2 * part + i % 2] + i / 2 * words_of_vector,
                           expand_nibbles(words, i % 2 == 1, b_signed));
      }
      b[2 * part] = expanded[2 * part];
      b[2 * part + 1] = expanded[2 * part + 1];
    } else {
      b[part] = operands.b[part];
    }
  }
  leave_in_memory(expanded);
  __m512i before[columns], sums[columns];
#pragma GCC unroll 2
  for (unsigned odd = 0; odd < 2; ++odd) {
    __m512i words[4];
    load_lines(operands.c[odd], operands.c[2 + odd], words);
    transpose_words(words);
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair)
      before[2 * pair + odd] = words[pair];
  }
  const bool changes_sign = method.a_signed == b_signed;
  alignas(64) uint32_t corrections[words_of_line * columns] = {};
  if (changes_sign) correct_columns<b_signed, byte_parts>(b, corrections);
  leave_in_memory(corrections);
#pragma GCC unroll 8
  for (unsigned column = 0; column < columns; ++column) {
    const __m512i start = _mm512_set1_epi32(static_cast<int>(corrections[column * words_of_line]));
    sums[column] = method.saturates ? start : _mm512_add_epi32(start, before[column]);
  }
  const __m512i change = _mm512_set1_epi8(static_cast<char>(changes_sign ? 0x80 : 0));
#pragma GCC unroll 4
  for (unsigned part = 0; part < byte_parts; ++part) {
    __m512i words[4];
    load_lines(operands.a[part / of_part * 2], operands.a[part / of_part * 2 + 1], words);
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; ++i) {
      if constexpr (nibbles) words[i] = expand_nibbles(words[i], part % 2 == 1, method.a_signed);
      words[i] = _mm512_xor_si512(words[i], change);
    }
    transpose_words(words);
#pragma GCC unroll 4
    for (unsigned i = 0; i < words_of_line; ++i)
#pragma GCC unroll 8
      for (unsigned column = 0; column < columns; ++column)
        sums[column] = add_byte_products<b_signed>(
            sums[column], words[i], _mm512_set1_epi32(static_cast<int>(b[part][column * words_of_line + i])));
  }
#pragma GCC unroll 2
  for (unsigned odd = 0; odd < 2; ++odd) {
    __m512i words[4];
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair) {
      const unsigned column = 2 * pair + odd;
      words[pair] = method.saturates ? add_clamped(sums[column], before[column]) : sums[column];
    }
    transpose_words(words);
    store_lines(operands.d[odd], operands.d[2 + odd], words);
  }
  return true;
}

template <bool b_signed, bool nibbles> WideRun run_of_integers(const WideForm& form) {
  return parts_of(form) == 1 ? &multiply_integers<b_signed, nibbles, 1> : &multiply_integers<b_signed, nibbles, 2>;
}

} // namespace

WideRun wide_integers_run(const WideForm& form) {
  const bool b_signed = ir::is_signed(form.b_type);
  const unsigned bits = ir::bit_width(form.a_type);
  if (form.sparse || bits != ir::bit_width(form.b_type)) return nullptr;
  if (bits == 8) return b_signed ? run_of_integers<true, false>(form) : run_of_integers<false, false>(form);
  return b_signed ? run_of_integers<true, true>(form) : run_of_integers<false, true>(form);
}

#endif

} // namespace ptxrewrite::emulator
