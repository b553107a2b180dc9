#include "emulator/special/matrix_tile.h"

#include "emulator/semantics/accumulate.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;
using Row = float __attribute__((vector_size(4 * tile_columns)));

Row load_row(const float* from) {
  Row row;
  std::memcpy(&row, from, sizeof row);
  return row;
}

void store_row(float* to, Row row) {
  std::memcpy(to, &row, sizeof row);
}

Row multiply_add(Row a, Row b, Row c) {
#if defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  for (unsigned i = 0; i < tile_columns; ++i)
    c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

template <class Element, class Convert>
void convert_elements(const std::byte* packed, unsigned count, float* numbers, Convert&& convert) {
  for (unsigned i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, packed + i * sizeof element, sizeof element);
    numbers[i] = convert(element);
  }
}

// Element 0 lies in the low half of a byte.
template <class Convert>
void convert_nibbles(const std::byte* packed, unsigned count, float* numbers, Convert&& convert) {
  for (unsigned i = 0; i < count; ++i)
    numbers[i] = convert(static_cast<int>(static_cast<unsigned>(packed[i / 2]) >> (i % 2 * 4) & 15));
}

} // namespace

void decode_elements(ScalarType type, const std::byte* packed, unsigned count, float* numbers) {
  using namespace semantics;
  switch (type) {
  case ScalarType::f16:
    return convert_elements<uint16_t>(packed, count, numbers, [](uint16_t bits) { return to_float(Float16{bits}); });
  case ScalarType::bf16:
    return convert_elements<uint16_t>(packed, count, numbers, [](uint16_t bits) { return to_float(BFloat16{bits}); });
  case ScalarType::tf32:
    return convert_elements<uint32_t>(packed, count, numbers, [](uint32_t bits) { return tf32_operand(bits); });
  case ScalarType::e4m3:
    return convert_elements<uint8_t>(packed, count, numbers, [](uint8_t bits) { return decode<e4m3_format>(bits); });
  case ScalarType::e5m2:
    return convert_elements<uint8_t>(packed, count, numbers, [](uint8_t bits) { return decode<e5m2_format>(bits); });
  case ScalarType::s8:
    return convert_elements<int8_t>(packed, count, numbers, [](int8_t value) { return static_cast<float>(value); });
  case ScalarType::u8:
    return convert_elements<uint8_t>(packed, count, numbers, [](uint8_t value) { return static_cast<float>(value); });
  case ScalarType::s4:
    return convert_nibbles(packed, count, numbers, [](int bits) { return static_cast<float>(bits - bits / 8 * 16); });
  case ScalarType::u4:
    return convert_nibbles(packed, count, numbers, [](int bits) { return static_cast<float>(bits); });
  case ScalarType::e2m1:
    return convert_nibbles(packed, count, numbers,
                           [](int bits) { return decode<e2m1_format>(static_cast<uint32_t>(bits)); });
  default: // f32 bits
    std::memcpy(numbers, packed, count * sizeof *numbers);
  }
}

void decode_containers(ScalarType type, const std::byte* packed, unsigned count, float* numbers) {
  using namespace semantics;
  switch (type) {
  case ScalarType::e3m2:
    return convert_elements<uint8_t>(packed, count, numbers,
                                     [](uint8_t bits) { return decode<e3m2_format>(bits & 0x3fu); });
  case ScalarType::e2m3:
    return convert_elements<uint8_t>(packed, count, numbers,
                                     [](uint8_t bits) { return decode<e2m3_format>(bits & 0x3fu); });
  case ScalarType::e2m1:
    return convert_elements<uint8_t>(packed, count, numbers,
                                     [](uint8_t bits) { return decode<e2m1_format>(bits >> 2 & 15u); });
  default:
    return decode_elements(type, packed, count, numbers);
  }
}

namespace {

// Rows first + i of the transposed square out of its columns.
template <unsigned side> void transpose_square(const float* columns, unsigned distance, float* rows) {
  for (unsigned column = 0; column < tile_columns; ++column)
    for (unsigned i = 0; i < side; ++i)
      rows[i * tile_columns + column] = columns[column * distance + i];
}

// Eight by eight in three steps of exchanging halves.
void transpose_eight(const float* columns, unsigned distance, float* rows) {
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
    store_row(rows + i * tile_columns, __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    store_row(rows + (i + 4) * tile_columns,
              __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

} // namespace

void transpose_columns(const float* columns, unsigned k, float* rows) {
  unsigned i = 0;
  for (; i + 8 <= k; i += 8)
    transpose_eight(columns + i, k, rows + i * tile_columns);
  if (i < k) transpose_square<4>(columns + i, k, rows + i * tile_columns);
}

void multiply_tile(const float* a, const float* b, unsigned rows, unsigned k, float* d) {
  constexpr unsigned together = 8; // rows, so that sums stay in registers
  for (unsigned first = 0; first < rows; first += together) {
    Row sums[together];
    for (unsigned i = 0; i < together; ++i)
      sums[i] = load_row(d + (first + i) * tile_columns);
    const float* left = a + first * k;
    for (unsigned step = 0; step < k; ++step) {
      const Row right = load_row(b + step * tile_columns);
      for (unsigned i = 0; i < together; ++i) {
        const float x = left[i * k + step];
        sums[i] = multiply_add(Row{x, x, x, x, x, x, x, x}, right, sums[i]);
      }
    }
    for (unsigned i = 0; i < together; ++i)
      store_row(d + (first + i) * tile_columns, sums[i]);
  }
}

void multiply_sparse_tile(const float* a, const uint8_t* columns, const float* b, unsigned rows, unsigned stored,
                          float* d) {
  for (unsigned row = 0; row < rows; ++row) {
    Row sums = load_row(d + row * tile_columns);
    for (unsigned i = 0; i < stored; ++i) {
      const float x = a[row * stored + i];
      sums = multiply_add(Row{x, x, x, x, x, x, x, x}, load_row(b + columns[row * stored + i] * tile_columns), sums);
    }
    store_row(d + row * tile_columns, sums);
  }
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
  decode_elements(ScalarType::f16, reinterpret_cast<const std::byte*>(both), 64, sums);
}

void store_half_sums(const float* sums, uint32_t* both) {
  uint16_t halves[64];
  for (unsigned i = 0; i < 64; ++i)
    halves[i] = semantics::to_half<semantics::Float16>(sums[i]).bits;
  std::memcpy(both, halves, sizeof halves);
}

namespace {
uint32_t whole_sum(float sum, uint32_t before, bool clamps) {
  const int64_t exact = static_cast<int64_t>(static_cast<int32_t>(sum)) + static_cast<int32_t>(before);
  return static_cast<uint32_t>(clamps ? std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX) : exact);
}
} // namespace

void add_whole_sums(const float* sums, bool clamps, uint32_t* first, uint32_t* second) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    first[lane] = whole_sum(sums[2 * lane], first[lane], clamps);
    second[lane] = whole_sum(sums[2 * lane + 1], second[lane], clamps);
  }
}

} // namespace ptxrewrite::emulator
