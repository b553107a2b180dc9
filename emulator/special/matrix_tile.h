// Tiles of matrices as f32 numbers of the host, and their products: the arithmetic of mma and wgmma.
//
// Every element type but f64 and b1 is a subset of f32. A tile of B has eight columns, row by row, so that a row of it
// is one vector; a tile of A or D has rows of any number. Sums run along k from 0 on, from what is in D, each rounded
// once to f32. Sums of products of integers are exact in f32 as long as they stay below 2^24, which the largest one
// does: 64 products of numbers of 8 bits.
#pragma once

#include "ir/isa/types.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator {

inline constexpr unsigned tile_columns = 8;

// The numbers of `count` elements that lie packed one behind the other: f16, bf16, f32, tf32 (19 bits of 32), e4m3,
// e5m2, e2m1, and integers of 8 and 4 bits.
void decode_elements(ir::ScalarType type, const std::byte* packed, unsigned count, float* numbers);

// Elements of kind::f8f6f4, each in a byte: of 6 bits in its low bits, of 4 bits (e2m1) in bits 2 to 5.
void decode_containers(ir::ScalarType type, const std::byte* packed, unsigned count, float* numbers);

// Rows of a tile of B out of its columns: rows[i * 8 + column] = columns[column * k + i]. k: a multiple of 4.
void transpose_columns(const float* columns, unsigned k, float* rows);

// d[row * 8 + column] += a[row * k + i] * b[i * 8 + column], for each i from 0 on. rows: a multiple of 8.
void multiply_tile(const float* a, const float* b, unsigned rows, unsigned k, float* d);

// The same where A has `stored` elements in each row, element i of which is column columns[row * stored + i].
void multiply_sparse_tile(const float* a, const uint8_t* columns, const float* b, unsigned rows, unsigned stored,
                          float* d);

// counts[row * 8 + column]: ones that the words of a row of A and of a column of B have in common, or with `differ`
// those in which they differ.
void count_bits(const uint32_t* rows, const uint32_t* columns, unsigned row_count, unsigned words, bool differ,
                float* counts);

// Half of the 64 sums of eight rows of D lie in each of two registers: element 2 * lane in the first one.
void load_sums(const uint32_t* first, const uint32_t* second, float* sums);
void store_sums(const float* sums, uint32_t* first, uint32_t* second);
// The same for f16 accumulators, two in a register: rounded once, to nearest even.
void load_half_sums(const uint32_t* both, float* sums);
void store_half_sums(const float* sums, uint32_t* both);
// Whole numbers: each added to what the register had and clamped to 32 bits, or cut off.
void add_whole_sums(const float* sums, bool clamps, uint32_t* first, uint32_t* second);

} // namespace ptxrewrite::emulator
