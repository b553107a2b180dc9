// What is known of mma.sync and wmma.mma before they run.
#pragma once

#include "emulator/special/matrix.h"

namespace ptxrewrite::emulator {

// Registers are listed D, A, B, C, then the metadata of a sparse A, then for A and for B the scales of a block-scaled
// product, which byte of them to begin with, and which lanes have them.
struct MatrixProduct {
  MatrixShape shape; // k in words for one-bit elements
  ir::ScalarType a_type = ir::ScalarType::none, b_type = ir::ScalarType::none;
  Fragment d, a, b, c;
  bool saturates = false;
  bool and_popc = false;
  int rounding = 0;           // of <cfenv>; f64
  bool in_containers = false; // elements of 4 and 6 bits, each in a byte
  bool sparse = false;
  unsigned selector = 0;    // of lanes with metadata
  unsigned scale_count = 0; // of a row of A and of a column of B; 0: none
  ir::ScalarType scale_type = ir::ScalarType::none;

  unsigned stored() const { return sparse ? shape.k / 2u : shape.k; } // elements of a row of A
  unsigned first_of_b() const { return d.registers + a.registers; }
  unsigned first_of_c() const { return first_of_b() + b.registers; }
  unsigned metadata() const { return first_of_c() + c.registers; }
  unsigned first_of_scales() const { return metadata() + (sparse ? 1 : 0); }
};

// Is each row of A and each column of B held by four lanes, 16 bytes a register (all but f64, wmma, and m8n8k4 of f16)?
// Then how it is carried out.
Handler group_product_handler(const MatrixProduct& product);

} // namespace ptxrewrite::emulator
