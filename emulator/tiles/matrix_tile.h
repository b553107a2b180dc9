// Tiles of matrices as f32 numbers of the host, and their products: the arithmetic of mma and wgmma.
//
// Every element type but f64 and b1 is a subset of f32. A tile of B has eight columns, stored row by row, so that a row
// is one vector; a tile of A or D has any number of rows. Sums run along k from 0, starting with the value in D, and
// round each step to f32. Sums of products of integers are exact in f32 while they are below 2^24, as the largest one
// is: 64 products of 8-bit numbers.
#pragma once

#include "emulator/tiles/decode_numbers.h"

namespace ptxrewrite::emulator {

inline constexpr unsigned tile_columns = 8;

// Makes rows of a tile of B from its columns: rows[i * 8 + column] = columns[column * k + i]. k: a multiple of 4.
void transpose_columns(const float* columns, unsigned k, float* rows);

// Transposes eight rows of eight 16-bit elements.
void transpose_half_matrix(uint32_t* matrix);

// d[row * distance + column] += a[row * k + i] * b[i * 8 + column], for i in ascending order. rows: a multiple of 8.
void multiply_tile(const float* a, const float* b, unsigned rows, unsigned k, float* d, size_t distance = tile_columns);

// The same for a sparse A with `stored` elements in each row: element i is in column columns[row * stored + i]. rows: a
// multiple of 8.
void multiply_sparse_tile(const float* a, const uint8_t* columns, const float* b, unsigned rows, unsigned stored,
                          float* d);

// The same for eight rows of A as vectors, a[i * 8 + row], and columns[i * 8 + row] likewise, and the lines of eight
// columns of B: d[column * distance + row] += a[i * 8 + row] * b[column * k + columns[i * 8 + row]]. Elements 4 * i to
// 4 * i + 3 of a row are in columns 8 * i to 8 * i + 7.
void multiply_sparse_lanes(const float* a, const int32_t* columns, const float* b, unsigned k, unsigned stored,
                           float* d, size_t distance);

// counts[row * 8 + column]: the number of bits that are set in both a row of A and a column of B, or with `differ` the
// number of bits in which they differ.
void count_bits(const uint32_t* rows, const uint32_t* columns, unsigned row_count, unsigned words, bool differ,
                float* counts);

// The same for 16-bit integers, two along k adjacent: elements 2 * i and 2 * i + 1 of a column of B
// are at b[(i * 8 + column) * 2]. k: a multiple of 16.
void transpose_pairs(const int16_t* columns, unsigned k, int16_t* rows);
void multiply_integer_tile(const int16_t* a, const int16_t* b, unsigned rows, unsigned k, int32_t* d);

// The 64 sums of eight rows of D are split over two registers: element 2 * lane is in the first one.
void load_sums(const uint32_t* first, const uint32_t* second, float* sums);
void store_sums(const float* sums, uint32_t* first, uint32_t* second);
// The same for f16 accumulators, two per register: rounded once, to nearest even.
void load_half_sums(const uint32_t* both, float* sums);
void store_half_sums(const float* sums, uint32_t* both);

// Sums with the even columns before the odd ones, the order in which registers hold them.
inline constexpr uint8_t even_columns_first[tile_columns] = {0, 4, 1, 5, 2, 6, 3, 7}; // the place of a column
void load_split_sums(const uint32_t* even, const uint32_t* odd, float* sums);
void store_split_sums(const float* sums, uint32_t* even, uint32_t* odd);
void load_split_half_sums(const uint32_t* both, float* sums);
void store_split_half_sums(const float* sums, uint32_t* both);
void add_split_sums(const int32_t* sums, bool clamps, uint32_t* even, uint32_t* odd);

// Integer sums: each is added to the register's value and clamped to 32 bits, or truncated.
void add_whole_sums(const float* sums, bool clamps, uint32_t* first, uint32_t* second);

} // namespace ptxrewrite::emulator
