// Products of floats whose operands are decoded once and multiplied many times, as wgmma does.
#include "emulator/tiles/wide_sparse.h"

namespace ptxrewrite::emulator {

#if defined(PTXREWRITE_WIDE_PRODUCTS)
namespace {

using ir::ScalarType;
using namespace wide;

constexpr unsigned parts = 2; // registers along k, of eight rows or columns

template <Kind kind>
constexpr unsigned lines = kind == Kind::codes ? 2 : 1; // of a register, once codes have become bf16
template <Kind kind> constexpr unsigned k_of() {
  return parts * lines<kind> * line_of(kind);
}

// Stores the elements of a line of each row, a vector for each element.
template <Kind kind> WIDE_INLINE void store_elements(__m512i (&words)[4], float* to) {
  transpose_words(words);
#pragma GCC unroll 4
  for (unsigned i = 0; i < words_of_line; ++i) {
    _mm512_store_ps(to, even_elements<kind>(words[i]));
    to += rows;
    if constexpr (has_pairs(kind)) {
      _mm512_store_ps(to, odd_elements<kind>(words[i]));
      to += rows;
    }
  }
}

template <Kind kind>
WIDE_INLINE void decode_elements_of_rows(const WideMethod& method, const uint32_t* const* a, float* to) {
  for (unsigned part = 0; part < parts; ++part) {
    __m512i words[4];
    load_lines(a[2 * part], a[2 * part + 1], words);
    if constexpr (kind == Kind::codes) {
      __m512i upper[4];
      widen_lines(*method.a_table, words, upper);
      store_elements<kind>(words, to + 2 * part * line_of(kind) * rows);
      store_elements<kind>(upper, to + (2 * part + 1) * line_of(kind) * rows);
    } else {
      store_elements<kind>(words, to + part * line_of(kind) * rows);
    }
  }
}

// Behind a sparse A's elements are the places of B's elements for them.
template <Kind kind, bool sparse>
[[WIDE_TARGET]] void decode_rows(const WideMethod& method, const WideOperands& operands, float* to) {
  decode_elements_of_rows<kind>(method, operands.a, to);
  if constexpr (sparse) {
    constexpr unsigned stored = k_of<kind>();
    __m512i metadata[4];
    read_metadata<(kind == Kind::tf32 ? 2 : 1) * stored>(operands, metadata);
#pragma GCC unroll 32
    for (unsigned k = 0; k < stored; ++k)
      _mm512_store_si512(to + (stored + k) * rows, sparse_places<kind>(metadata, k));
  }
}

template <Kind kind, bool sparse>
[[WIDE_TARGET]] void decode_columns(const WideMethod& method, const uint32_t* const* b, float* to) {
  if constexpr (sparse) {
    constexpr unsigned of_line = registers_of_sparse_line<kind>;
    for (unsigned i = 0; i < 2 * parts; i += of_line) {
      SparseLine line;
      decode_sparse_line<kind>(method, b + i, nullptr, line);
#pragma GCC unroll 8
      for (unsigned column = 0; column < columns; ++column, to += of_sparse_line)
        _mm512_store_ps(to, line[column]);
    }
  } else {
    for (unsigned part = 0; part < parts; ++part)
      decode_b<kind>(method, b[part], to + part * lines<kind> * line_of(kind) * columns);
  }
}

template <Kind kind, bool half_sums, bool sparse>
[[WIDE_TARGET]] void multiply(const float* a, const float* b, const uint32_t* const* c, uint32_t* const* d) {
  constexpr unsigned stored = k_of<kind>();
  __m512 sums[columns];
  read_sums<half_sums>(c, sums);
  if constexpr (sparse) {
#pragma GCC unroll 4
    for (unsigned first = 0; first < stored; first += stored_of_sparse_line) {
      SparseLine line;
#pragma GCC unroll 8
      for (unsigned column = 0; column < columns; ++column, b += of_sparse_line)
        line[column] = _mm512_load_ps(b);
#pragma GCC unroll 8
      for (unsigned k = first; k < first + stored_of_sparse_line; ++k)
        add_sparse_products(_mm512_load_ps(a + k * rows), line, _mm512_load_si512(a + (stored + k) * rows), sums);
    }
  } else {
#pragma GCC unroll 8
    for (unsigned k = 0; k < stored; ++k) {
      const __m512 element = _mm512_load_ps(a + k * rows);
#pragma GCC unroll 8
      for (unsigned column = 0; column < columns; ++column)
        sums[column] = _mm512_fmadd_ps(element, _mm512_set1_ps(b[place_in_b<kind>(k, column)]), sums[column]);
    }
  }
  write_sums<half_sums>(d, sums);
}

template <Kind kind, bool half_sums, bool sparse>
constexpr WideGroup group_of = {&decode_rows<kind, sparse>, &decode_columns<kind, sparse>,
                                &multiply<kind, half_sums, sparse>};

template <Kind kind> const WideGroup* group_of_kind(const WideForm& form) {
  if (form.k != k_of<kind>() * (form.sparse ? 2 : 1)) return nullptr;
  if (form.sparse) return form.has_half_sums ? &group_of<kind, true, true> : &group_of<kind, false, true>;
  return form.has_half_sums ? &group_of<kind, true, false> : &group_of<kind, false, false>;
}

} // namespace

const WideGroup* wide_group(const WideForm& form) {
  switch (form.a_type) {
  case ScalarType::f16:
    return group_of_kind<Kind::f16>(form);
  case ScalarType::bf16:
    return group_of_kind<Kind::bf16>(form);
  case ScalarType::tf32:
    return group_of_kind<Kind::tf32>(form);
  case ScalarType::e4m3:
  case ScalarType::e5m2:
    return group_of_kind<Kind::codes>(form);
  default:
    return nullptr;
  }
}

#endif

} // namespace ptxrewrite::emulator
