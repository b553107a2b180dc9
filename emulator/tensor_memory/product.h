// tcgen05.mma: the product of two matrices, added to D in tensor memory or replacing it (PTX ISA 9.7.16.10.9).
//
// Rows of D, and of an A in tensor memory, map to lanes as in PTX ISA 9.7.16.10.5 ("Data path layout organization"):
//
//   128 rows of a block                    row r in lane r
//   64 rows of one block or a sparse pair  row r in lane r / 16 * 32 + r % 16, or 16 lanes further on (not .ws)
//   64 rows of two blocks' 128, or .ws     row r in lane r for the first half of the columns, 64 + r for the second
//   32 rows (.ws)                          row r in lanes r, 32 + r, 64 + r, 96 + r, for a quarter of the columns each
//
// D uses a 32-bit column for each element, f16 in the low half; A has as many elements per column as fit,
// with kind::f8f6f4 one in each byte. In a pair of blocks each block has half of the rows of A and half of the
// columns of B in its shared memory, and its rows of D and of A in its tensor memory. Scales are in tensor memory as
// in PTX ISA 9.7.16.10.7: for row or column i in lane i % 32 of each quarter and column i / 32, one byte each.
//
// Accumulation starts with D and adds the products in the order of k, rounding to f32 after each addition. The products
// themselves are exact, for block-scaled elements including their scales. Integer sums wrap around, or saturate
// (.satfinite).
#pragma once

#include "emulator/core/block.h"
#include "emulator/tensor_memory/instruction_descriptor.h"

#include <array>
#include <cstdint>

namespace ptxrewrite::emulator {

class TensorMemory;

// An issued product. Its addresses have been checked.
struct ProductIssue {
  const ProductForm* form = nullptr;
  InstructionDescriptor descriptor;
  TensorMemory* even = nullptr; // of the first block of the pair, or of the only block
  TensorMemory* odd = nullptr;  // of the other block; nullptr if there is none
  uint64_t a = 0, b = 0;        // descriptors in shared memory; a: only if A is there
  uint32_t a_place = 0;         // in tensor memory
  uint32_t d = 0, a_scales = 0, b_scales = 0;
  uint32_t metadata = 0;              // of sparse A
  std::array<uint32_t, 8> disabled{}; // lanes of D that are not written: 128 bits per block
  bool adds = false;
  unsigned d_shift = 0; // D is multiplied by 2^-d_shift first
};

// The lanes and columns of a block's rows of D.
struct RowPlaces {
  unsigned rows = 0;      // of one block
  unsigned folds = 1;     // number of parts that the columns are split into
  bool is_spread = false; // 16 rows in each quarter

  uint32_t lane(unsigned row, unsigned fold) const { return is_spread ? row / 16 * 32 + row % 16 : row + fold * rows; }
};
RowPlaces row_places(const ProductForm& form, const InstructionDescriptor& descriptor);

// Number of 32-bit columns of a row of A in tensor memory.
inline constexpr unsigned a_columns = 8;

void carry_out(const ProductIssue& issue);

// tcgen05.cp: rows from shared memory to tensor memory (PTX ISA 9.7.16.9.2).
struct CopyForm {
  unsigned rows = 0, chunks = 0; // of 16 bytes, per row
  unsigned unpacked_bits = 0;    // width of elements that are expanded to bytes; 0: bytes are copied
  unsigned group = 1;
  // Number of copies of each row; the lane of row r depends on the copy.
  unsigned copies = 1;
  enum class Lanes : uint8_t { same, one_of_quarter, halves_apart, quarters_apart, pairs_apart } lanes = Lanes::same;

  uint32_t lane(unsigned row, unsigned copy) const;
};
struct CopyIssue {
  const CopyForm* form = nullptr;
  TensorMemory* even = nullptr;
  TensorMemory* odd = nullptr;
  uint64_t source = 0;
  uint32_t target = 0;
};
void carry_out(const CopyIssue& issue);

// tcgen05.shift: rows of 32 bytes move to the lane before theirs (PTX ISA 9.7.16.9.3), in each warp's quarter of the
// lanes on its own, whose last row keeps its value: measured on a B200 by cicuvc's public notes on SASS (UTCSHIFT).
struct ShiftIssue {
  TensorMemory* even = nullptr;
  TensorMemory* odd = nullptr;
  uint32_t column = 0;
};
inline constexpr unsigned shifted_columns = 8;
void carry_out(const ShiftIssue& issue);

} // namespace ptxrewrite::emulator
