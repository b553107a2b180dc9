// The 32 bits that describe a product of tcgen05.mma (PTX ISA 9.7.16.4.2, "Instruction descriptor"): types, shape,
// signs and the contiguous dimension of A and B in shared memory.
#pragma once

#include "ir/isa/types.h"

#include <cstdint>
#include <string>

namespace ptxrewrite::emulator {

enum class ProductKind : uint8_t { f16, tf32, f8f6f4, i8, ti16, mxf8f6f4, mxf4, mxf4nvf4 };

// The static properties of a tcgen05.mma, which come from its form and not from its descriptors.
struct ProductForm {
  ProductKind kind = ProductKind::f16;
  unsigned group = 1; // blocks that take part: .cta_group
  bool a_in_memory = false;
  bool weights_stay = false; // .ws
  bool sparse = false;
  unsigned scale_count = 0; // scales per row of A and per column of B; 0: not block-scaled
};

enum class SumType : uint8_t { f16, f32, s32 };

// Elements of kind::ti16 (PTX ISA 9.4: .s1z4m11) have a sign and a magnitude of 11 bits, with four bits between them
// that are zeros; they are described as b16.
struct InstructionDescriptor {
  ir::ScalarType a_type = ir::ScalarType::none, b_type = ir::ScalarType::none;
  SumType sums = SumType::f32;
  unsigned m = 0, n = 0, k = 0; // of all blocks; k: elements of a column of B
  unsigned selector = 0;        // for sparse products: location of the metadata
  bool saturates = false;
  bool negates_a = false, negates_b = false;
  bool a_rows_major = false, b_columns_major = false; // MN-major
  ir::ScalarType scale_type = ir::ScalarType::none;
  unsigned a_scale_byte = 0, b_scale_byte = 0; // first used byte of each 32-bit word of scales
};

// Decodes the descriptor for a product of this form. Returns a message if the bits are illegal for it, else an empty
// string.
std::string read_descriptor(uint32_t bits, const ProductForm& form, InstructionDescriptor& descriptor);

} // namespace ptxrewrite::emulator
