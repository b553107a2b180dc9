// Tiles of matrices as f32 numbers of the host, and their products: the arithmetic of mma and wgmma.
//
// Every element type but f64 and b1 is a subset of f32. A tile of B has eight columns, row by row, so that a row of it
// is one vector; a tile of A or D has rows of any number. Sums run along k from 0 on, from what is in D, each rounded
// once to f32. Sums of products of integers are exact in f32 as long as they stay below 2^24, which the largest one
// does: 64 products of numbers of 8 bits.
#pragma once

#include "emulator/tiles/decode_numbers.h"

namespace ptxrewrite::emulator {

inline constexpr unsigned tile_columns = 8;

// Rows of a tile of B out of its columns: rows[i * 8 + column] = columns[column * k + i]. k: a multiple of 4.
void transpose_columns(const float* columns, unsigned k, float* rows);

// Transposes eight rows of eight elements of 16 bits.
void transpose_half_matrix(uint32_t* matrix);

// d[row * 8 + column] += a[row * k + i] * b[i * 8 + column], for each i from 0 on. rows: a multiple of 8.
void multiply_tile(const float* a, const float* b, unsigned rows, unsigned k, float* d);

// The same where A has `stored` elements in each row, element i of which is column columns[row * stored + i]. rows: a
// multiple of 8.
void multiply_sparse_tile(const float* a, const uint8_t* columns, const float* b, unsigned rows, unsigned stored,
                          float* d);

// counts[row * 8 + column]: ones that the words of a row of A and of a column of B have in common, or with `differ`
// those in which they differ.
void count_bits(const uint32_t* rows, const uint32_t* columns, unsigned row_count, unsigned words, bool differ,
                float* counts);

// The same for whole numbers of 16 bits, two along k beside each other: those of a column of B, 2 * i and the next one,
// lie at b[(i * 8 + column) * 2]. k: a multiple of 16.
void transpose_pairs(const int16_t* columns, unsigned k, int16_t* rows);
void multiply_integer_tile(const int16_t* a, const int16_t* b, unsigned rows, unsigned k, int32_t* d);

// Half of the 64 sums of eight rows of D lie in each of two registers: element 2 * lane in the first one.
void load_sums(const uint32_t* first, const uint32_t* second, float* sums);
void store_sums(const float* sums, uint32_t* first, uint32_t* second);
// The same for f16 accumulators, two in a register: rounded once, to nearest even.
void load_half_sums(const uint32_t* both, float* sums);
void store_half_sums(const float* sums, uint32_t* both);

// Sums whose even columns stand before the odd ones, which is as they lie in registers.
inline constexpr uint8_t even_columns_first[tile_columns] = {0, 4, 1, 5, 2, 6, 3, 7}; // the place of a column
void load_split_sums(const uint32_t* even, const uint32_t* odd, float* sums);
void store_split_sums(const float* sums, uint32_t* even, uint32_t* odd);
void load_split_half_sums(const uint32_t* both, float* sums);
void store_split_half_sums(const float* sums, uint32_t* both);
void add_split_sums(const int32_t* sums, bool clamps, uint32_t* even, uint32_t* odd);

// Whole numbers: each added to what the register had and clamped to 32 bits, or cut off.
void add_whole_sums(const float* sums, bool clamps, uint32_t* first, uint32_t* second);

} // namespace ptxrewrite::emulator
