// Layout of the metadata of sparse matrices A in tensor memory (PTX ISA 9.7.16.10.8; shown in figures in the manual);
// in words it is CUTLASS's layout of the metadata fragment (cute/atom/mma_traits_sm100_frag.hpp, tmem_e_frg, for 128
// rows per block, and for .ws):
//
//   8 and 4 bits   row r in lane r; 4 bits for each 4 elements (4 pairs of elements of 4 bits), in two columns
//   16 bits, tf32  16 bits for each half of a row along K: half h in lane r % 8 + 8 h + r / 16 * 16, in the low
//                  half of the column if r / 8 is even, in the high half if it is odd; 4 bits for each 4 elements
//                  of 16 bits, or 2 of tf32. The column is that of the address, which is even, or the next one,
//                  depending on the sparsity selector.
//
// 4 bits are two 2-bit indices: of the stored units, in their order. A tf32 element is two units.
#pragma once

#include "emulator/tensor_memory/instruction_descriptor.h"

#include <cstdint>

namespace ptxrewrite::emulator {

inline constexpr unsigned metadata_columns = 2;

struct IndexPlace {
  uint32_t lane = 0, column = 0; // relative to the metadata's address
  unsigned shift = 0;            // of the 4 bits
};

inline unsigned elements_of_index(ProductKind kind) {
  switch (kind) {
  case ProductKind::tf32:
    return 2;
  case ProductKind::mxf4:
  case ProductKind::mxf4nvf4:
    return 8;
  case ProductKind::f16:
  case ProductKind::f8f6f4:
  case ProductKind::i8:
  case ProductKind::ti16:
  case ProductKind::mxf8f6f4:
    break;
  }
  return 4;
}

inline bool has_selector(ProductKind kind) {
  return kind == ProductKind::f16 || kind == ProductKind::ti16 || kind == ProductKind::tf32;
}

// `number`: index of the 4 bits along K; a row has eight of them for f16 and tf32, sixteen for other kinds.
inline IndexPlace index_place(ProductKind kind, unsigned selector, unsigned row, unsigned number) {
  if (!has_selector(kind)) return {row, number / 8, number % 8 * 4};
  const unsigned half = number / 4;
  return {row % 8 + 8 * half + row / 16 * 16, selector, row / 8 % 2 * 16 + number % 4 * 4};
}

// Column of A of the `i`-th stored element with the 4 bits `indices`; `i` and the column are relative to these bits.
// Indices: a number, or a vector of them.
template <class Indices> Indices column_of(ProductKind kind, Indices indices, unsigned i) {
  switch (kind) {
  case ProductKind::tf32:
    return indices >> 1 & 1;
  case ProductKind::mxf4:
  case ProductKind::mxf4nvf4:
    return (indices >> static_cast<int>(i / 2 * 2) & 3) * 2 + static_cast<int>(i % 2);
  case ProductKind::f16:
  case ProductKind::f8f6f4:
  case ProductKind::i8:
  case ProductKind::ti16:
  case ProductKind::mxf8f6f4:
    break;
  }
  return indices >> static_cast<int>(i * 2) & 3;
}

} // namespace ptxrewrite::emulator
