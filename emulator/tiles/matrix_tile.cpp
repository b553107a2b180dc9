#include "emulator/tiles/matrix_tile.h"

#include "emulator/semantics/accumulate.h"
#include "emulator/semantics/half_vector.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace ptxrewrite::emulator {
namespace {

using Row = float __attribute__((vector_size(4 * tile_columns)));

// Elements of other types are moved unchanged.
template <class Element> Row load_row(const Element* from) {
  Row row;
  std::memcpy(&row, from, sizeof row);
  return row;
}

template <class Element> void store_row(Element* to, Row row) {
  std::memcpy(to, &row, sizeof row);
}

Row multiply_add(Row a, Row b, Row c) {
#if defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  for (unsigned i = 0; i < tile_columns; ++i)
    c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

// Transposes words; `distance` and k count Elements, of which a word contains `each`.
template <class Element, unsigned each = 4 / sizeof(Element)>
void transpose_four(const Element* columns, unsigned distance, Element* rows) {
  for (unsigned column = 0; column < tile_columns; ++column)
    for (unsigned i = 0; i < 4; ++i)
      std::memcpy(rows + (i * tile_columns + column) * each, columns + column * distance + i * each, 4);
}

// Transposes eight by eight words in three steps of exchanging halves.
template <class Element, unsigned each = 4 / sizeof(Element)>
void transpose_eight(const Element* columns, unsigned distance, Element* rows) {
  Row in[8], pairs[8], fours[8];
  for (unsigned i = 0; i < 8; ++i)
    in[i] = load_row(columns + i * distance);
  for (unsigned i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(in[i], in[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[i + 1] = __builtin_shufflevector(in[i], in[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (unsigned i = 0; i < 8; i += 4)
    for (unsigned j = 0; j < 2; ++j) {
      fours[i + j] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + j + 2] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (unsigned i = 0; i < 4; ++i) {
    store_row(rows + i * tile_columns * each,
              __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    store_row(rows + (i + 4) * tile_columns * each,
              __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

template <class Element, unsigned each = 4 / sizeof(Element)>
void transpose(const Element* columns, unsigned k, Element* rows) {
  unsigned i = 0;
  for (; i + 8 * each <= k; i += 8 * each)
    transpose_eight(columns + i, k, rows + i * tile_columns);
  if (i < k) transpose_four(columns + i, k, rows + i * tile_columns);
}

// Moves the even columns of a row before the odd ones, and the reverse.
Row split_row(Row row) {
  return __builtin_shufflevector(row, row, 0, 2, 4, 6, 1, 3, 5, 7);
}
Row unsplit_row(Row row) {
  return __builtin_shufflevector(row, row, 0, 4, 1, 5, 2, 6, 3, 7);
}

// Stores a row as f16, rounded to nearest even; NaNs become the canonical NaN.
void store_half_row(Row row, uint32_t* to) {
#if defined(PTXREWRITE_HALF_VECTORS)
  const semantics::Halves halves = semantics::to_halves(row);
#else
  uint16_t halves[tile_columns];
  for (unsigned i = 0; i < tile_columns; ++i)
    halves[i] = semantics::to_half<semantics::Float16>(row[i]).bits;
#endif
  std::memcpy(to, &halves, sizeof halves);
}

using IntegerRow = int32_t __attribute__((vector_size(4 * tile_columns)));

// Element `i`: the element of `row` at places[i] % 8.
Row select(Row row, IntegerRow places) {
#if defined(__AVX2__)
  return __builtin_ia32_permvarsf256(row, places);
#else
  Row selected;
  for (unsigned i = 0; i < tile_columns; ++i)
    selected[i] = row[places[i] & 7];
  return selected;
#endif
}

// A word holds two numbers of 16 bits.
IntegerRow multiply_add_pairs(int32_t a, IntegerRow b, IntegerRow sums) {
#if defined(__AVX2__)
  using Pairs = int16_t __attribute__((vector_size(4 * tile_columns)));
  const IntegerRow all = {a, a, a, a, a, a, a, a};
  return sums + __builtin_ia32_pmaddwd256((Pairs)all, (Pairs)b);
#else
  for (unsigned i = 0; i < tile_columns; ++i)
    sums[i] += static_cast<int16_t>(a) * static_cast<int16_t>(b[i]) +
               static_cast<int16_t>(a >> 16) * static_cast<int16_t>(b[i] >> 16);
  return sums;
#endif
}

} // namespace

void transpose_columns(const float* columns, unsigned k, float* rows) {
  transpose(columns, k, rows);
}

void transpose_half_matrix(uint32_t* matrix) {
  using Line = uint16_t __attribute__((vector_size(16)));
  Line in[8], pairs[8], fours[8];
  std::memcpy(in, matrix, sizeof in);
  // Interleaves the elements of two lines, then pairs, then groups of four.
  for (unsigned i = 0; i < 4; ++i) {
    pairs[2 * i] = __builtin_shufflevector(in[i], in[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    pairs[2 * i + 1] = __builtin_shufflevector(in[i], in[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (unsigned i = 0; i < 4; ++i) {
    fours[2 * i] = __builtin_shufflevector(pairs[i], pairs[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    fours[2 * i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (unsigned i = 0; i < 4; ++i) {
    in[2 * i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    in[2 * i + 1] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  std::memcpy(matrix, in, sizeof in);
}

void transpose_pairs(const int16_t* columns, unsigned k, int16_t* rows) {
  transpose(columns, k, rows);
}

namespace {

constexpr unsigned rows_together = 8; // enough for independent sums, few enough to stay in registers

// Multiplies eight rows. `length`: elements in a row of A, a compile-time constant where it is known.
template <class Length>
[[gnu::always_inline]] inline void multiply_rows(const float* a, const float* b, Length length, float* d,
                                                 size_t distance) {
  const size_t k = length;
  Row sums[rows_together];
  for (size_t i = 0; i < rows_together; ++i)
    sums[i] = load_row(d + i * distance);
#pragma GCC unroll 4
  for (size_t step = 0; step < k; ++step) {
    const Row right = load_row(b + step * tile_columns);
    for (size_t i = 0; i < rows_together; ++i) {
      const float x = a[i * k + step];
      sums[i] = multiply_add(Row{x, x, x, x, x, x, x, x}, right, sums[i]);
    }
  }
  for (size_t i = 0; i < rows_together; ++i)
    store_row(d + i * distance, sums[i]);
}

template <size_t k> using Constant = std::integral_constant<size_t, k>;

} // namespace

void multiply_tile(const float* a, const float* b, unsigned rows, unsigned k, float* d, size_t distance) {
  const auto multiply_all = [&](auto length) {
    for (size_t first = 0; first < rows; first += rows_together)
      multiply_rows(a + first * length, b, length, d + first * distance, distance);
  };
  switch (k) { // the lengths of mma and wgmma
  case 8:
    return multiply_all(Constant<8>());
  case 16:
    return multiply_all(Constant<16>());
  case 32:
    return multiply_all(Constant<32>());
  default:
    return multiply_all(size_t(k));
  }
}

void multiply_integer_tile(const int16_t* a, const int16_t* b, unsigned rows, unsigned k, int32_t* d) {
  for (size_t first = 0; first < rows; first += rows_together) {
    IntegerRow sums[rows_together];
    for (size_t i = 0; i < rows_together; ++i)
      sums[i] = (IntegerRow)load_row(d + (first + i) * tile_columns);
    const int16_t* lines[rows_together];
    for (size_t i = 0; i < rows_together; ++i)
      lines[i] = a + (first + i) * k;
    for (size_t step = 0; step < k; step += 2) {
      IntegerRow right;
      std::memcpy(&right, b + step * tile_columns, sizeof right);
      for (size_t i = 0; i < rows_together; ++i) {
        int32_t left;
        std::memcpy(&left, lines[i] + step, sizeof left);
        sums[i] = multiply_add_pairs(left, right, sums[i]);
      }
    }
    for (size_t i = 0; i < rows_together; ++i)
      store_row(d + (first + i) * tile_columns, (Row)sums[i]);
  }
}

void multiply_sparse_tile(const float* a, const uint8_t* columns, const float* b, unsigned rows, unsigned stored,
                          float* d) {
  for (size_t first = 0; first < rows; first += rows_together) {
    Row sums[rows_together];
    for (size_t i = 0; i < rows_together; ++i)
      sums[i] = load_row(d + (first + i) * tile_columns);
    for (size_t step = 0; step < stored; ++step)
      for (size_t i = 0; i < rows_together; ++i) {
        const size_t at = (first + i) * stored + step;
        const float x = a[at];
        sums[i] = multiply_add(Row{x, x, x, x, x, x, x, x}, load_row(b + columns[at] * tile_columns), sums[i]);
      }
    for (size_t i = 0; i < rows_together; ++i)
      store_row(d + (first + i) * tile_columns, sums[i]);
  }
}

void multiply_sparse_lanes(const float* a, const int32_t* columns, const float* b, unsigned k, unsigned stored,
                           float* d, size_t distance) {
  Row sums[tile_columns];
  for (size_t i = 0; i < tile_columns; ++i)
    sums[i] = load_row(d + i * distance);
  for (size_t step = 0; step < stored; ++step) {
    const size_t first = step / 4 * 8; // column of A
    const Row left = load_row(a + step * tile_columns);
    IntegerRow places;
    std::memcpy(&places, columns + step * tile_columns, sizeof places);
    for (size_t i = 0; i < tile_columns; ++i)
      sums[i] = multiply_add(left, select(load_row(b + i * k + first), places), sums[i]);
  }
  for (size_t i = 0; i < tile_columns; ++i)
    store_row(d + i * distance, sums[i]);
}

void count_bits(const uint32_t* rows, const uint32_t* columns, unsigned row_count, unsigned words, bool differ,
                float* counts) {
  for (unsigned row = 0; row < row_count; ++row)
    for (unsigned column = 0; column < tile_columns; ++column) {
      unsigned count = 0;
      for (unsigned i = 0; i < words; ++i) {
        const uint32_t x = rows[row * words + i], y = columns[column * words + i];
        count += static_cast<unsigned>(std::popcount(differ ? x ^ y : x & y));
      }
      counts[row * tile_columns + column] = static_cast<float>(count);
    }
}

void load_sums(const uint32_t* first, const uint32_t* second, float* sums) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    sums[2 * lane] = std::bit_cast<float>(first[lane]);
    sums[2 * lane + 1] = std::bit_cast<float>(second[lane]);
  }
}

void store_sums(const float* sums, uint32_t* first, uint32_t* second) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    first[lane] = std::bit_cast<uint32_t>(semantics::canonical(sums[2 * lane]));
    second[lane] = std::bit_cast<uint32_t>(semantics::canonical(sums[2 * lane + 1]));
  }
}

void load_half_sums(const uint32_t* both, float* sums) {
  decode_elements(ir::ScalarType::f16, reinterpret_cast<const std::byte*>(both), 64, sums);
}

void store_half_sums(const float* sums, uint32_t* both) {
  for (unsigned row = 0; row < 8; ++row)
    store_half_row(load_row(sums + row * tile_columns), both + row * tile_columns / 2);
}

// A row of eight columns is in four lanes of both registers.
void load_split_sums(const uint32_t* even, const uint32_t* odd, float* sums) {
  constexpr unsigned half = tile_columns / 2;
  for (unsigned row = 0; row < 8; ++row) {
    std::memcpy(sums + row * tile_columns, even + row * half, half * sizeof *sums);
    std::memcpy(sums + row * tile_columns + half, odd + row * half, half * sizeof *sums);
  }
}

void store_split_sums(const float* sums, uint32_t* even, uint32_t* odd) {
  constexpr unsigned half = tile_columns / 2;
  for (unsigned row = 0; row < 8; ++row) {
    uint32_t bits[tile_columns];
    for (unsigned i = 0; i < tile_columns; ++i)
      bits[i] = std::bit_cast<uint32_t>(semantics::canonical(sums[row * tile_columns + i]));
    std::memcpy(even + row * half, bits, half * sizeof *bits);
    std::memcpy(odd + row * half, bits + half, half * sizeof *bits);
  }
}

void load_split_half_sums(const uint32_t* both, float* sums) {
  load_half_sums(both, sums);
  for (unsigned row = 0; row < 8; ++row)
    store_row(sums + row * tile_columns, split_row(load_row(sums + row * tile_columns)));
}

void store_split_half_sums(const float* sums, uint32_t* both) {
  for (unsigned row = 0; row < 8; ++row)
    store_half_row(unsplit_row(load_row(sums + row * tile_columns)), both + row * tile_columns / 2);
}

namespace {
// 32-bit arithmetic so that the compiler can vectorise it: on overflow, the sum's sign differs from both terms'.
uint32_t finished_sum(int32_t sum, uint32_t before, bool clamps) {
  const uint32_t wrapped = static_cast<uint32_t>(sum) + before;
  const uint32_t overflow = (wrapped ^ before) & (wrapped ^ static_cast<uint32_t>(sum)) & 0x80000000u;
  const uint32_t limit = 0x7fffffffu + (before >> 31);
  return clamps && overflow ? limit : wrapped;
}

uint32_t whole_sum(float sum, uint32_t before, bool clamps) {
  return finished_sum(static_cast<int32_t>(sum), before, clamps);
}
} // namespace

void add_split_sums(const int32_t* sums, bool clamps, uint32_t* even, uint32_t* odd) {
  constexpr unsigned half = tile_columns / 2;
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned i = 0; i < half; ++i) {
      uint32_t& first = even[row * half + i];
      uint32_t& second = odd[row * half + i];
      first = finished_sum(sums[row * tile_columns + i], first, clamps);
      second = finished_sum(sums[row * tile_columns + half + i], second, clamps);
    }
}

void add_whole_sums(const float* sums, bool clamps, uint32_t* first, uint32_t* second) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    first[lane] = whole_sum(sums[2 * lane], first[lane], clamps);
    second[lane] = whole_sum(sums[2 * lane + 1], second[lane], clamps);
  }
}

} // namespace ptxrewrite::emulator
