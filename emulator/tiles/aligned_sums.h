// Sums of products of matrices as the tensor cores of Hopper compute them: LaunchRequest::matrix_sums.
//
// The products of an instruction and its accumulator are aligned to the largest exponent among them. Each is cut off
// (towards zero) a number of bits behind that exponent, and the aligned numbers are added exactly. The exponent of a
// product is the sum of those of its factors as they are encoded: a product in [2, 4) times a power of two counts as
// one in [1, 2). Source: results of an H100, docs/h100.md, "Sums of tensor cores".
#pragma once

#include "ir/isa/types.h"

#include <cstdint>
#include <optional>

namespace ptxrewrite::emulator {

struct AlignedSums {
  // Exponents of the smallest normal numbers of A's and B's type, with which subnormals are encoded.
  int a_exponent = 0, b_exponent = 0;
  unsigned fraction = 0; // bits behind the largest exponent
  unsigned bits = 0;     // of a sum, whose further bits are cut off; 0: it is rounded to f16 by the caller
  // Elements 0 and 1 of each four along k are added first, to zero, then elements 2 and 3; the sum is added to the
  // accumulator as add.rn.f32 does.
  bool in_two_halves = false;
};

struct SummedForm {
  ir::ScalarType a = ir::ScalarType::none, b = ir::ScalarType::none;
  bool has_half_sums = false; // accumulators are f16
  bool sparse = false;
  bool is_group = false; // wgmma
};

// nullopt: integers and f64, whose sums need no law; what Hopper's tensor cores do not have; and what was not measured:
// sparse wgmma, sparse products of fp8, and mma of fp8 with accumulators in f16.
std::optional<AlignedSums> hopper_sums(const SummedForm& form);

// As multiply_tile() and multiply_sparse_tile() (matrix_tile.h), in this order of summation. If AlignedSums::bits is 0,
// a sum that f32 does not represent exactly is rounded to odd, so that rounding it to f16 is rounding the exact sum.
void multiply_tile(const AlignedSums& law, const float* a, const float* b, unsigned rows, unsigned k, float* d);
void multiply_sparse_tile(const AlignedSums& law, const float* a, const uint8_t* columns, const float* b, unsigned rows,
                          unsigned stored, float* d);

} // namespace ptxrewrite::emulator
