#include "emulator/semantics/host_vectors.h"
#include "emulator/tiles/decode_numbers.h"
#include "emulator/tiles/wide_scales.h"
#include "emulator/tiles/wide_sparse.h"
#include "emulator/tiles/wide_vectors.h"

#include <bit>
#include <cstddef>

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using ir::ScalarType;
using namespace wide;

// --- products of numbers ---

// The elements of A times the scales of their rows; unscaled: the elements.
template <bool scaled> WIDE_INLINE __m512 times_scales(__m512 elements, __m512 scales) {
  return scaled ? _mm512_mul_ps(elements, scales) : elements;
}

// Adds the products of an element of each row, element `k` of the rows.
template <Kind kind> WIDE_INLINE void add_products(__m512 a, const float* b, unsigned k, __m512 (&sums)[columns]) {
#pragma GCC unroll 8
  for (unsigned column = 0; column < columns; ++column)
    sums[column] = _mm512_fmadd_ps(a, _mm512_set1_ps(b[place_in_b<kind>(k, column)]), sums[column]);
}

template <Kind kind, bool scaled>
WIDE_INLINE void multiply_lines(__m512i (&words)[4], const float* b, unsigned first, __m512 scales,
                                __m512 (&sums)[columns]) {
  constexpr unsigned each = has_pairs(kind) ? 2 : 1;
  transpose_words(words);
#pragma GCC unroll 4
  for (unsigned i = 0; i < words_of_line; ++i) {
    const unsigned k = first + i * each;
    add_products<kind>(times_scales<scaled>(even_elements<kind>(words[i]), scales), b, k, sums);
    if constexpr (each == 2)
      add_products<kind>(times_scales<scaled>(odd_elements<kind>(words[i]), scales), b, k + 1, sums);
  }
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

// The scales of a product with one for each row and each column.
struct SingleScales {
  __m512 of_rows;
  alignas(64) float of_columns[words_of_vector];
};
// False: some scale is extreme.
WIDE_INLINE bool read_single_scales(const WideMethod& method, const WideOperands& operands, SingleScales& scales) {
  const __m512i of_rows = read_scales(operands.a_scales, lanes_of_scales.of_rows);
  const __m512i of_columns = read_scales(operands.b_scales, lanes_of_scales.of_columns);
  if (!are_moderate<1>(method.scale_type, of_rows) || !are_moderate<1>(method.scale_type, of_columns)) return false;
  scales.of_rows = scales_of_block(method.scale_type, of_rows, 0);
  _mm512_store_ps(scales.of_columns, scales_of_block(method.scale_type, of_columns, 0));
  leave_in_memory(scales.of_columns);
  return true;
}

template <Kind kind, unsigned parts, bool half_sums, bool scaled = false>
[[WIDE_TARGET]] bool multiply_numbers(const WideMethod& method, const WideOperands& operands) {
  constexpr unsigned lines = kind == Kind::codes ? 2 : 1; // of a register, once codes have become bf16
  constexpr unsigned line = line_of(kind);
  SingleScales scales;
  if (scaled && !read_single_scales(method, operands, scales)) return false;
  alignas(64) float b[parts * lines * line * columns];
#pragma GCC unroll 2
  for (unsigned i = 0; i < parts; ++i)
    decode_b<kind>(method, operands.b[i], b + i * lines * line * columns);
  if constexpr (scaled) scale_columns(scales.of_columns, parts * lines, b);
  leave_in_memory(b);
  __m512 sums[columns];
  read_sums<half_sums>(operands.c, sums);
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[4];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    if constexpr (kind == Kind::codes) {
      __m512i upper[4];
      widen_lines(*method.a_table, words, upper);
      multiply_lines<kind, scaled>(words, b, part * 2 * line, scales.of_rows, sums);
      multiply_lines<kind, scaled>(upper, b, part * 2 * line + line, scales.of_rows, sums);
    } else {
      multiply_lines<kind, false>(words, b, part * line, scales.of_rows, sums);
    }
  }
  write_sums<half_sums>(operands.d, sums);
  return true;
}

// --- sparse A ---

// Adds the products of line `line` of B and the elements of A that are multiplied by it, eight in each row, with pairs
// of them in a word. B's numbers stay in registers meanwhile.
template <Kind kind, bool scaled>
WIDE_INLINE void multiply_sparse_line(__m512i (&words)[4], const WideMethod& method, const WideOperands& operands,
                                      const __m512i (&metadata)[4], unsigned line, const SingleScales& scales,
                                      __m512 (&sums)[columns]) {
  SparseLine b;
  decode_sparse_line<kind>(method, operands.b + line * registers_of_sparse_line<kind>,
                           scaled ? scales.of_columns : nullptr, b);
  transpose_words(words);
#pragma GCC unroll 4
  for (unsigned i = 0; i < words_of_line; ++i) {
    const unsigned k = line * stored_of_sparse_line + 2 * i;
    add_sparse_products(times_scales<scaled>(even_elements<kind>(words[i]), scales.of_rows), b,
                        sparse_places<kind>(metadata, k), sums);
    add_sparse_products(times_scales<scaled>(odd_elements<kind>(words[i]), scales.of_rows), b,
                        sparse_places<kind>(metadata, k + 1), sums);
  }
}

template <Kind kind, unsigned parts, bool half_sums, bool scaled = false>
[[WIDE_TARGET]] bool multiply_sparse_numbers(const WideMethod& method, const WideOperands& operands) {
  constexpr unsigned lines = kind == Kind::codes ? 2 : 1; // of a part
  SingleScales scales;
  if (scaled && !read_single_scales(method, operands, scales)) return false;
  __m512i metadata[4];
  read_metadata<parts * lines * stored_of_sparse_line>(operands, metadata);
  __m512 sums[columns];
  read_sums<half_sums>(operands.c, sums);
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[4];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    if constexpr (kind == Kind::codes) {
      __m512i upper[4];
      widen_lines(*method.a_table, words, upper);
      multiply_sparse_line<kind, scaled>(words, method, operands, metadata, 2 * part, scales, sums);
      multiply_sparse_line<kind, scaled>(upper, method, operands, metadata, 2 * part + 1, scales, sums);
    } else {
      multiply_sparse_line<kind, false>(words, method, operands, metadata, part, scales, sums);
    }
  }
  write_sums<half_sums>(operands.d, sums);
  return true;
}

template <unsigned parts> [[WIDE_TARGET]] bool multiply_sparse_tf32(const WideMethod&, const WideOperands& operands) {
  Tf32Columns b[2 * parts];
  read_sparse_tf32(operands.b, b);
  __m512i metadata[4];
  read_metadata<2 * parts * words_of_line>(operands, metadata);
  __m512 sums[columns];
  read_sums(operands.c, sums);
#pragma GCC unroll 2
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[4];
    load_lines(operands.a[2 * part], operands.a[2 * part + 1], words);
    transpose_words(words);
#pragma GCC unroll 4
    for (unsigned i = 0; i < words_of_line; ++i)
      add_sparse_tf32(even_elements<Kind::tf32>(words[i]), b, metadata, part * words_of_line + i, sums);
  }
  write_sums(operands.d, sums);
  return true;
}

// --- selection ---

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

template <Kind kind, unsigned parts> WideRun run_of_parts(const WideForm& form) {
  if (form.sparse)
    return form.has_half_sums ? &multiply_sparse_numbers<kind, parts, true>
                              : &multiply_sparse_numbers<kind, parts, false>;
  return form.has_half_sums ? &multiply_numbers<kind, parts, true> : &multiply_numbers<kind, parts, false>;
}
WideRun run_of_scaled(const WideForm& form) {
  if (parts_of(form) != 2 || form.has_half_sums) return nullptr;
  return form.sparse ? &multiply_sparse_numbers<Kind::codes, 2, false, true>
                     : &multiply_numbers<Kind::codes, 2, false, true>;
}
template <Kind kind> WideRun run_of(const WideForm& form) {
  return parts_of(form) == 1 ? run_of_parts<kind, 1>(form) : run_of_parts<kind, 2>(form);
}
// tf32 with a sparse A has a way of its own.
WideRun run_of_tf32(const WideForm& form) {
  if (form.sparse) return parts_of(form) == 1 ? &multiply_sparse_tf32<1> : &multiply_sparse_tf32<2>;
  return parts_of(form) == 1 ? &multiply_numbers<Kind::tf32, 1, false> : &multiply_numbers<Kind::tf32, 2, false>;
}

} // namespace

bool host_has_wide_products() {
  return semantics::host_has_avx512() && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

namespace {

WideMethod method_of_form(const WideForm& form) {
  WideMethod method;
  if (form.a_type == ScalarType::f64) {
    method.run = wide_doubles_run(form);
    return method;
  }
  if (form.in_quads) {
    method.run = wide_quads_run(form);
    return method;
  }
  if (form.is_packed) {
    method.saturates = form.saturates;
    method.run = wide_packed_run(form);
    return method;
  }
  const bool may_have_half_the_rows = ir::is_integer(form.a_type);
  if ((form.m != rows && (form.m != rows / 2 || !may_have_half_the_rows)) || form.n != columns || parts_of(form) < 1 ||
      parts_of(form) > 2)
    return method;
  method.saturates = form.saturates;
  if (form.scale_count > 1) {
    method.run = wide_scaled_codes_run(form);
    return method;
  }
  if (form.scale_count && ir::bit_width(form.a_type) > 8) return method;
  switch (form.a_type) {
  case ScalarType::f16:
    if (form.b_type == form.a_type) method.run = run_of<Kind::f16>(form);
    return method;
  case ScalarType::bf16:
    if (form.b_type == form.a_type) method.run = run_of<Kind::bf16>(form);
    return method;
  case ScalarType::tf32:
    if (form.b_type == form.a_type) method.run = run_of_tf32(form);
    return method;
  case ScalarType::s8:
  case ScalarType::u8:
  case ScalarType::s4:
  case ScalarType::u4:
    method.run = wide_integers_run(form);
    method.a_signed = ir::is_signed(form.a_type);
    return method;
  default:
    method.a_table = table_of(form.a_type, form.in_containers);
    method.b_table = table_of(form.b_type, form.in_containers);
    if (method.a_table && method.b_table)
      method.run = form.scale_count ? run_of_scaled(form) : run_of<Kind::codes>(form);
    return method;
  }
}

} // namespace

WideMethod wide_method(const WideForm& form) {
  if (!host_has_wide_products()) return {};
  WideMethod method = method_of_form(form);
  method.scale_type = form.scale_type;
  if (method && form.m == rows && !form.is_packed && !form.scale_count) method.group = wide_group(form);
  return method;
}

#else

WideMethod wide_method(const WideForm&) {
  return {};
}

#endif

} // namespace ptxrewrite::emulator
