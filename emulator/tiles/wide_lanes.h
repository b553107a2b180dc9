// Products of sixteen rows and eight columns by AVX-512 where the rows of a column of D are adjacent, as in tensor
// memory. The arithmetic, and so each bit, is that of multiply_tile() and multiply_sparse_lanes() (matrix_tile.h) on
// eight rows each, followed by store_floats(): NaNs become the canonical one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator {

// A: element i of sixteen rows at a[i * 16], for each element that is stored, aligned to 64 bytes. B: eight columns of
// k elements. Sparse A: the column of each element, of which the lowest four bits count.
struct LanesProduct {
  const float* a;
  const float* b;
  const int32_t* places = nullptr;
};

// Adds the product to d[column * distance + row].
using LanesMethod = void (*)(const LanesProduct& product, float* d, size_t distance);

// For rows of A with `stored` elements. nullptr: none, also on hosts without the instructions for it.
LanesMethod lanes_method(bool sparse, unsigned stored);

} // namespace ptxrewrite::emulator
