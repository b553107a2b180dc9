// How the elements of a matrix lie in the registers of a warp's lanes.
//
// mma: as the manual says (PTX ISA 9.7.14.5). wmma: the manual leaves it open; here element e of a fragment, counted
// row by row, lies in lane e / n, where n is how many elements each lane holds; registers that are left over hold the
// same elements again. So f16 and f32 accumulators of one shape agree.
#pragma once

#include "emulator/core/micro_op.h"
#include "ir/isa/matrix_shape.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

enum class MatrixRole : uint8_t { a, b, accumulator };

using ir::MatrixShape;

// Elements of one register and where they belong. One-bit elements count by words of 32.
struct Fragment {
  unsigned registers = 0;
  unsigned register_bits = 32;
  unsigned element_bits = 32;
  unsigned matrices = 1; // m8n8k4 of f16 is four products at once
  unsigned rows = 0, columns = 0;
  // Index (matrix * rows + row) * columns + column for each element: of register 0, lane 0 first, then lane 1 ...
  std::vector<uint16_t> places;

  unsigned per_register() const { return register_bits / element_bits; }
  unsigned size() const { return matrices * rows * columns; }
};

// `registers` is what the instruction has; `column_major`: .col of m8n8k4's f16 operands, which tells them apart.
Fragment mma_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers, bool column_major);
Fragment wmma_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers);

} // namespace ptxrewrite::emulator
