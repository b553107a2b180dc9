// mma.sync of integers by whole warps.
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

// The bytes of B in `byte_parts` arrays as correct_columns() has them; 4 bits: of each register the elements in low
// halves of bytes, then the others.
template <bool b_signed, bool nibbles, unsigned parts> struct BytesOfB {
  static constexpr unsigned of_part = nibbles ? 2 : 1, byte_parts = parts * of_part;
  const uint32_t* bytes[byte_parts];
  alignas(64) uint32_t expanded[nibbles ? byte_parts : 1][words_of_line * columns];

  WIDE_INLINE explicit BytesOfB(const uint32_t* const* b) {
#pragma GCC unroll 4
    for (unsigned part = 0; part < parts; ++part) {
      if constexpr (nibbles) {
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; ++i) {
          const __m512i words = _mm512_loadu_si512(b[part] + i / 2 * words_of_vector);
          _mm512_store_si512(expanded[2 * part + i % 2] + i / 2 * words_of_vector,
                             expand_nibbles(words, i % 2 == 1, b_signed));
        }
        bytes[2 * part] = expanded[2 * part];
        bytes[2 * part + 1] = expanded[2 * part + 1];
      } else {
        bytes[part] = b[part];
      }
    }
    leave_in_memory(expanded);
  }
};

WIDE_INLINE void read_integer_sums(const uint32_t* const* c, __m512i (&sums)[columns]) {
#pragma GCC unroll 2
  for (unsigned odd = 0; odd < 2; ++odd) {
    __m512i words[4];
    load_lines(c[odd], c[2 + odd], words);
    transpose_words(words);
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair)
      sums[2 * pair + odd] = words[pair];
  }
}

WIDE_INLINE void write_integer_sums(bool saturates, const __m512i (&sums)[columns], const __m512i (&before)[columns],
                                    uint32_t* const* d) {
#pragma GCC unroll 2
  for (unsigned odd = 0; odd < 2; ++odd) {
    __m512i words[4];
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair) {
      const unsigned column = 2 * pair + odd;
      words[pair] = saturates ? add_clamped(sums[column], before[column]) : sums[column];
    }
    transpose_words(words);
    store_lines(d[odd], d[2 + odd], words);
  }
}

// Does each pair of the first `count` words' indices select two units?
template <unsigned count> WIDE_INLINE bool indices_differ(const __m512i (&metadata)[4]) {
  const __m512i one_of_pair = _mm512_set1_epi32(0x1111);
  __m512i all = one_of_pair;
#pragma GCC unroll 4
  for (unsigned i = 0; i < count; ++i) {
    const __m512i differ = _mm512_xor_si512(metadata[i], _mm512_srli_epi32(metadata[i], 2));
    all = _mm512_and_si512(all, _mm512_or_si512(differ, _mm512_srli_epi32(differ, 1)));
  }
  return _mm512_cmpneq_epi32_mask(all, one_of_pair) == 0;
}

// Which of the two stored bytes of four are expanded: both, or one after the other, in two passes, where both may have
// the same place.
struct Kept {
  uint32_t first, second; // masks
};

// Of each row the four bytes of which two are stored: bytes 2 * half and 2 * half + 1 of `stored`, at the places that
// two indices, from bit `shift` on, select.
WIDE_INLINE __m512i expand_pair(__m512i stored, unsigned half, __m512i metadata, unsigned shift, Kept kept) {
  using Words = uint32_t __attribute__((vector_size(64))); // shifts by numbers that inlining makes constants
  const auto words = (Words)stored, indices = (Words)metadata >> shift;
  const Words first = (words >> (16 * half) & kept.first) << ((indices & 3) << 3);
  const Words second = (words >> (16 * half + 8) & kept.second) << ((indices >> 2 & 3) << 3);
  return (__m512i)(first | second);
}

// Adds the products of four bytes of each row (4 bits: of eight elements), byte 4 * word and the next three of a line.
template <bool b_signed, bool nibbles, unsigned parts>
WIDE_INLINE void add_word_products(const WideMethod& method, __m512i a, __m512i change, unsigned word,
                                   const BytesOfB<b_signed, nibbles, parts>& b, __m512i (&sums)[columns]) {
  constexpr unsigned of_part = nibbles ? 2 : 1;
#pragma GCC unroll 2
  for (unsigned i = 0; i < of_part; ++i) {
    __m512i bytes = a;
    if constexpr (nibbles) bytes = expand_nibbles(a, i == 1, method.a_signed);
    bytes = _mm512_xor_si512(bytes, change);
    const uint32_t* line = b.bytes[word / words_of_line * of_part + i] + word % words_of_line;
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column)
      sums[column] = add_byte_products<b_signed>(sums[column], bytes,
                                                 _mm512_set1_epi32(static_cast<int>(line[column * words_of_line])));
  }
}

// Adds the products of all rows once.
template <bool b_signed, bool nibbles, unsigned parts, bool sparse, unsigned b_parts>
WIDE_INLINE void add_integers(const WideMethod& method, const WideOperands& operands, const __m512i (&metadata)[4],
                              Kept kept, const BytesOfB<b_signed, nibbles, b_parts>& b, __m512i (&sums)[columns]) {
  constexpr unsigned bytes_of_word = 4, indices_of_word = 8;
  const __m512i change = _mm512_set1_epi8(static_cast<char>(method.a_signed == b_signed ? 0x80 : 0));
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[words_of_line];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    transpose_words(words);
#pragma GCC unroll 4
    for (unsigned i = 0; i < words_of_line; ++i) {
      const unsigned word = part * words_of_line + i, index = word * bytes_of_word;
      if constexpr (sparse) {
#pragma GCC unroll 2
        for (unsigned half = 0; half < 2; ++half)
          add_word_products(method,
                            expand_pair(words[i], half, metadata[index / indices_of_word],
                                        (index + 2 * half) % indices_of_word * 2, kept),
                            change, 2 * word + half, b, sums);
      } else {
        add_word_products(method, words[i], change, word, b, sums);
      }
    }
  }
}

template <bool b_signed, bool nibbles, unsigned parts, bool sparse>
[[WIDE_TARGET]] bool multiply_integers(const WideMethod& method, const WideOperands& operands) {
  constexpr unsigned bytes_of_line = 16, indices_of_word = 8;
  constexpr Kept both{0xff, 0xff}, one_by_one[] = {{0xff, 0}, {0, 0xff}};
  __m512i metadata[4];
  bool is_one_pass = true;
  if constexpr (sparse) {
    read_metadata<parts * bytes_of_line>(operands, metadata);
    is_one_pass = indices_differ<parts * bytes_of_line / indices_of_word>(metadata);
  }
  const BytesOfB<b_signed, nibbles, sparse ? 2 * parts : parts> b(operands.b);
  __m512i before[columns], sums[columns];
  read_integer_sums(operands.c, before);
  alignas(64) uint32_t corrections[words_of_line * columns] = {};
  if (method.a_signed == b_signed) correct_columns<b_signed, b.byte_parts>(b.bytes, corrections);
  leave_in_memory(corrections);
#pragma GCC unroll 8
  for (unsigned column = 0; column < columns; ++column) {
    const auto once = static_cast<int>(corrections[column * words_of_line]); // for each pass
    const __m512i start = _mm512_set1_epi32(is_one_pass ? once : 2 * once);
    sums[column] = method.saturates ? start : _mm512_add_epi32(start, before[column]);
  }
  if (is_one_pass) {
    add_integers<b_signed, nibbles, parts, sparse>(method, operands, metadata, both, b, sums);
  } else if constexpr (sparse) {
    for (const Kept& kept : one_by_one)
      add_integers<b_signed, nibbles, parts, sparse>(method, operands, metadata, kept, b, sums);
  }
  write_integer_sums(method.saturates, sums, before, operands.d);
  return true;
}

// Products of eight rows: those of sixteen, the lower ones like the upper ones and dropped.
template <WideRun run>
[[WIDE_TARGET]] bool multiply_upper_rows(const WideMethod& method, const WideOperands& operands) {
  uint32_t dropped[2][32];
  const uint32_t* const a[] = {operands.a[0], operands.a[0]};
  const uint32_t* const c[] = {operands.c[0], operands.c[1], operands.c[0], operands.c[1]};
  uint32_t* const d[] = {operands.d[0], operands.d[1], dropped[0], dropped[1]};
  return run(method, {d, a, operands.b, c, nullptr, 0});
}

template <bool b_signed, bool nibbles> WideRun run_of_integers(const WideForm& form) {
  if (form.m == rows / 2) return &multiply_upper_rows<&multiply_integers<b_signed, nibbles, 1, false>>;
  if (form.sparse)
    return parts_of(form) == 1 ? &multiply_integers<b_signed, nibbles, 1, true>
                               : &multiply_integers<b_signed, nibbles, 2, true>;
  return parts_of(form) == 1 ? &multiply_integers<b_signed, nibbles, 1, false>
                             : &multiply_integers<b_signed, nibbles, 2, false>;
}

} // namespace

WideRun wide_integers_run(const WideForm& form) {
  const bool b_signed = ir::is_signed(form.b_type);
  const unsigned bits = ir::bit_width(form.a_type);
  if (bits != ir::bit_width(form.b_type)) return nullptr;
  if (bits == 8) return b_signed ? run_of_integers<true, false>(form) : run_of_integers<false, false>(form);
  return b_signed ? run_of_integers<true, true>(form) : run_of_integers<false, true>(form);
}

#endif

} // namespace ptxrewrite::emulator
