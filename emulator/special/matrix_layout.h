// Layout of a matrix's elements in the registers of a warp's lanes.
//
// mma: as the manual defines it (PTX ISA 9.7.14.5). wmma: the manual leaves it open; here element e of a fragment,
// counted row by row, is in lane e / n, where n is the number of elements per lane; further registers hold copies of
// the same elements. Thus f16 and f32 accumulators of one shape have the same layout.
#pragma once

#include "emulator/core/micro_op.h"
#include "ir/isa/matrix_shape.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator {

enum class MatrixRole : uint8_t { a, b, accumulator };

using ir::MatrixShape;

// Elements of one register and their positions. One-bit elements are counted in words of 32.
struct Fragment {
  unsigned registers = 0;
  unsigned register_bits = 32;
  unsigned element_bits = 32;
  unsigned matrices = 1; // m8n8k4 of f16 consists of four products
  unsigned rows = 0, columns = 0;
  // Index (matrix * rows + row) * columns + column of each element: register 0 of lane 0, then of lane 1 ...
  std::vector<uint16_t> places;

  unsigned per_register() const { return register_bits / element_bits; }
  unsigned size() const { return matrices * rows * columns; }
};

// `registers`: number in the instruction; `column_major`: .col of m8n8k4's f16 operands, whose layout depends on it.
Fragment mma_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers, bool column_major);
Fragment wmma_fragment(MatrixShape shape, MatrixRole role, ir::ScalarType type, unsigned registers);

} // namespace ptxrewrite::emulator
