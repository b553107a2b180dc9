#include "emulator/tiles/decode_numbers.h"
#include "emulator/tiles/wide_vectors.h"

#include <bit>
#include <cstddef>

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using ir::ScalarType;
using namespace wide;

// --- C and D ---

template <bool half_sums> WIDE_INLINE void read_sums(const uint32_t* const* c, __m512 (&sums)[columns]) {
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

template <bool half_sums> WIDE_INLINE void write_sums(uint32_t* const* d, const __m512 (&sums)[columns]) {
  constexpr unsigned together = half_sums ? 1 : 2;
#pragma GCC unroll 2
  for (unsigned i = 0; i < together; ++i) {
    __m512i words[4];
#pragma GCC unroll 4
    for (unsigned pair = 0; pair < 4; ++pair)
      words[pair] = half_sums ? _mm512_or_si512(to_half_words(sums[2 * pair]),
                                                _mm512_slli_epi32(to_half_words(sums[2 * pair + 1]), 16))
                              : to_canonical_words(sums[2 * pair + i]);
    transpose_words(words);
    store_lines(d[i], d[together + i], words);
  }
}

// --- products of numbers ---

// Adds the products of an element of each row, element `k` of the rows as they are stored.
template <Kind kind, bool sparse>
WIDE_INLINE void add_products(__m512 a, const float* b, const __m512i (&metadata)[4], unsigned k,
                              __m512 (&sums)[columns]) {
  if constexpr (!sparse) {
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column)
      sums[column] = _mm512_fmadd_ps(a, _mm512_set1_ps(b[place_in_b<kind>(k, column)]), sums[column]);
  } else {
    // A 2-bit index selects one of four units along k; a tf32 element is two units (sparse_metadata.h).
    constexpr unsigned indices_of_word = 8;
    const unsigned index = kind == Kind::tf32 ? 2 * k : k;
    using Words = uint32_t __attribute__((vector_size(64))); // shifts by a number that inlining makes a constant
    const auto shifted = (__m512i)((Words)metadata[index / indices_of_word] >> (index % indices_of_word * 2));
    __m512i select = shifted;
    if constexpr (kind == Kind::tf32)
      select = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(shifted, 1), _mm512_set1_epi32(1)),
                               _mm512_set1_epi32(k % 2 * 2));
#pragma GCC unroll 8
    for (unsigned column = 0; column < columns; ++column) {
      const __m512 four = _mm512_broadcast_f32x4(_mm_load_ps(b + place_in_b<kind>(k / 2 * 4, column)));
      sums[column] = _mm512_fmadd_ps(a, _mm512_permutevar_ps(four, select), sums[column]);
    }
  }
}

// The words of metadata with the indices of each row, in the order of the indices.
template <Kind kind, unsigned stored>
WIDE_INLINE void read_metadata(const WideOperands& operands, __m512i (&metadata)[4]) {
  constexpr unsigned indices = kind == Kind::tf32 ? 2 * stored : stored, lanes = indices < 8 ? 1 : indices / 8;
  __m512i all[4]; // of each of four lanes
  load_lines(operands.metadata, operands.metadata, all);
  all[2] = _mm512_srli_epi32(all[2], 16);
  all[3] = _mm512_srli_epi32(all[3], 16);
  transpose_words(all);
  alignas(64) __m512i stored_words[4] = {all[0], all[1], all[2], all[3]};
#pragma GCC unroll 4
  for (unsigned i = 0; i < 4; ++i)
    metadata[i] = stored_words[(operands.selector * lanes + i) % 4];
}

// The elements of A times the scales of their rows; unscaled: the elements.
template <bool scaled> WIDE_INLINE __m512 times_scales(__m512 elements, __m512 scales) {
  return scaled ? _mm512_mul_ps(elements, scales) : elements;
}

template <Kind kind, bool sparse, bool scaled = false>
WIDE_INLINE void multiply_lines(__m512i (&words)[4], const float* b, const __m512i (&metadata)[4], unsigned first,
                                __m512 scales, __m512 (&sums)[columns]) {
  constexpr unsigned each = has_pairs(kind) ? 2 : 1;
  transpose_words(words);
#pragma GCC unroll 4
  for (unsigned i = 0; i < words_of_line; ++i) {
    add_products<kind, sparse>(times_scales<scaled>(even_elements<kind>(words[i]), scales), b, metadata,
                               first + i * each, sums);
    if constexpr (each == 2)
      add_products<kind, sparse>(times_scales<scaled>(odd_elements<kind>(words[i]), scales), b, metadata,
                                 first + i * each + 1, sums);
  }
}

// In the order of a vector of rows (wide_vectors.h).
WIDE_INLINE __m512 row_scales(const float* scales) {
  const __m512i places = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_ps(places, _mm512_loadu_ps(scales));
}

// Multiplies numbers of B, `lines` times eight elements of each column, by the scales of their columns.
WIDE_INLINE void scale_columns(const float* scales, unsigned lines, float* b) {
  constexpr unsigned line = words_of_vector / 2; // two columns in a vector
  for (unsigned pair = 0; pair < columns / 2; ++pair) {
    const __m512 both =
        _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(scales[2 * pair]), _mm512_set1_ps(scales[2 * pair + 1]));
    for (unsigned i = 0; i < lines; ++i) {
      float* numbers = b + (i * columns + 2 * pair) * line;
      _mm512_store_ps(numbers, _mm512_mul_ps(_mm512_load_ps(numbers), both));
    }
  }
}

template <Kind kind, unsigned parts, bool half_sums, bool sparse, bool scaled = false>
[[WIDE_TARGET]] bool multiply_numbers(const WideMethod& method, const WideOperands& operands) {
  constexpr unsigned lines = kind == Kind::codes ? 2 : 1; // of a register, once codes have become bf16
  constexpr unsigned line = line_of(kind), b_registers = sparse ? 2 * parts : parts;
  alignas(64) float b[b_registers * lines * line * columns];
#pragma GCC unroll 4
  for (unsigned i = 0; i < b_registers; ++i)
    decode_b<kind>(method, operands.b[i], b + i * lines * line * columns);
  if constexpr (scaled) scale_columns(operands.b_scales, b_registers * lines, b);
  leave_in_memory(b);
  const __m512 scales = scaled ? row_scales(operands.a_scales) : _mm512_setzero_ps();
  __m512i metadata[4];
  if constexpr (sparse) read_metadata<kind, parts * lines * line>(operands, metadata);
  __m512 sums[columns];
  read_sums<half_sums>(operands.c, sums);
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[4];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    if constexpr (kind == Kind::codes) {
      __m512i upper[4];
#pragma GCC unroll 4
      for (unsigned i = 0; i < 4; ++i) {
        const Widened wide = widen_codes(*method.a_table, words[i]);
        words[i] = wide.lower;
        upper[i] = wide.upper;
      }
      multiply_lines<kind, sparse, scaled>(words, b, metadata, part * 2 * line, scales, sums);
      multiply_lines<kind, sparse, scaled>(upper, b, metadata, part * 2 * line + line, scales, sums);
    } else {
      multiply_lines<kind, sparse>(words, b, metadata, part * line, scales, sums);
    }
  }
  write_sums<half_sums>(operands.d, sums);
  return true;
}

// --- integers ---
//
// The instruction multiplies bytes without a sign by bytes with a sign. A is brought to the other kind than B by adding
// or subtracting 128; the sum of B's column times 128 is taken off again.

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

// --- selection ---

bool host_has_instructions() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
  return has;
}

CodeTable make_table(ScalarType type, bool in_containers) {
  CodeTable table;
  std::array<std::byte, 128> codes;
  std::array<float, 128> numbers;
  for (unsigned code = 0; code < codes.size(); ++code)
    codes[code] = static_cast<std::byte>(code);
  (in_containers ? decode_containers : decode_elements)(type, codes.data(), static_cast<unsigned>(codes.size()),
                                                        numbers.data());
  for (unsigned code = 0; code < codes.size(); ++code) {
    const auto bits = std::bit_cast<uint32_t>(numbers[code]);
    table.low[code] = static_cast<uint8_t>(bits >> 16);
    table.high[code] = static_cast<uint8_t>(bits >> 24);
  }
  table.sign = type == ScalarType::e4m3 || type == ScalarType::e5m2 ? 0x80 : 0;
  return table;
}

// nullptr: not one of the types with a code in each byte.
const CodeTable* table_of(ScalarType type, bool in_containers) {
  static const CodeTable e4m3 = make_table(ScalarType::e4m3, false), e5m2 = make_table(ScalarType::e5m2, false);
  static const CodeTable e3m2 = make_table(ScalarType::e3m2, true), e2m3 = make_table(ScalarType::e2m3, true);
  static const CodeTable e2m1 = make_table(ScalarType::e2m1, true);
  switch (type) {
  case ScalarType::e4m3:
    return &e4m3;
  case ScalarType::e5m2:
    return &e5m2;
  case ScalarType::e3m2:
    return in_containers ? &e3m2 : nullptr;
  case ScalarType::e2m3:
    return in_containers ? &e2m3 : nullptr;
  case ScalarType::e2m1:
    return in_containers ? &e2m1 : nullptr;
  default:
    return nullptr;
  }
}

// 16 bytes of each row of A.
unsigned parts_of(const WideForm& form) {
  const unsigned bits = form.in_containers ? 8 : ir::bit_width(form.a_type);
  return form.k / (form.sparse ? 2 : 1) * bits / 128;
}

template <Kind kind, unsigned parts> WideRun run_of_parts(const WideForm& form) {
  if (form.sparse)
    return form.has_half_sums ? &multiply_numbers<kind, parts, true, true>
                              : &multiply_numbers<kind, parts, false, true>;
  return form.has_half_sums ? &multiply_numbers<kind, parts, true, false>
                            : &multiply_numbers<kind, parts, false, false>;
}
WideRun run_of_scaled(const WideForm& form) {
  if (parts_of(form) != 2 || form.has_half_sums) return nullptr;
  return form.sparse ? &multiply_numbers<Kind::codes, 2, false, true, true>
                     : &multiply_numbers<Kind::codes, 2, false, false, true>;
}
template <Kind kind> WideRun run_of(const WideForm& form) {
  return parts_of(form) == 1 ? run_of_parts<kind, 1>(form) : run_of_parts<kind, 2>(form);
}

template <bool b_signed, bool nibbles> WideRun run_of_integers(const WideForm& form) {
  return parts_of(form) == 1 ? &multiply_integers<b_signed, nibbles, 1> : &multiply_integers<b_signed, nibbles, 2>;
}

WideRun run_of_integers(const WideForm& form) {
  const bool b_signed = ir::is_signed(form.b_type);
  const unsigned bits = ir::bit_width(form.a_type);
  if (form.sparse || bits != ir::bit_width(form.b_type)) return nullptr;
  if (bits == 8) return b_signed ? run_of_integers<true, false>(form) : run_of_integers<false, false>(form);
  return b_signed ? run_of_integers<true, true>(form) : run_of_integers<false, true>(form);
}

} // namespace

WideMethod wide_method(const WideForm& form) {
  WideMethod method;
  if (!host_has_instructions()) return method;
  if (form.is_packed) {
    method.run = wide_packed_run(form);
    return method;
  }
  if (form.a_type == ScalarType::f64) {
    method.run = wide_doubles_run(form);
    return method;
  }
  if (form.m != rows || form.n != columns || parts_of(form) < 1 || parts_of(form) > 2) return method;
  method.saturates = form.saturates;
  if (form.has_scales && ir::bit_width(form.a_type) > 8) return method;
  switch (form.a_type) {
  case ScalarType::f16:
    if (form.b_type == form.a_type) method.run = run_of<Kind::f16>(form);
    return method;
  case ScalarType::bf16:
    if (form.b_type == form.a_type) method.run = run_of<Kind::bf16>(form);
    return method;
  case ScalarType::tf32:
    if (form.b_type == form.a_type) method.run = run_of<Kind::tf32>(form);
    return method;
  case ScalarType::s8:
  case ScalarType::u8:
  case ScalarType::s4:
  case ScalarType::u4:
    method.run = run_of_integers(form);
    method.a_signed = ir::is_signed(form.a_type);
    return method;
  default:
    method.a_table = table_of(form.a_type, form.in_containers);
    method.b_table = table_of(form.b_type, form.in_containers);
    if (method.a_table && method.b_table)
      method.run = form.has_scales ? run_of_scaled(form) : run_of<Kind::codes>(form);
    return method;
  }
}

#else

WideMethod wide_method(const WideForm&) {
  return {};
}

#endif

} // namespace ptxrewrite::emulator
