// Products of matrices by AVX-512, straight from the lanes' registers: mma.sync with sixteen rows of all element types
// but b1, dense and sparse, of f64 and integers also with eight, and m8n8k4 of f16; wmma.mma of f64 and of m16n16 of
// floats. The arithmetic, and so each bit, is that of multiply_tile(), multiply_sparse_tile() and
// multiply_integer_tile() (matrix_tile.h). mma's registers hold lines as decode_lines() has them.
#pragma once

#include "ir/isa/types.h"

#include <cstdint>

namespace ptxrewrite::emulator {

struct WideForm {
  unsigned m = 0, n = 0, k = 0;
  ir::ScalarType a_type = ir::ScalarType::none, b_type = ir::ScalarType::none;
  bool in_containers = false; // of kind::f8f6f4
  bool has_half_sums = false; // C and D are f16
  bool saturates = false;     // integers
  bool sparse = false;
  unsigned scale_count = 0; // for each row of A and column of B; 0: none
  ir::ScalarType scale_type = ir::ScalarType::none;
  bool is_packed = false;                       // wmma
  int rounding = 0;                             // of <cfenv>; f64
  bool in_quads = false;                        // the four products of m8n8k4 of f16
  bool a_in_columns = false, b_in_rows = false; // layouts, of these
};

// The scales of one matrix of a block-scaled product: a register of 32 lanes, the first of the lanes that have them,
// and the first byte in each.
struct WideScales {
  const uint32_t* lanes = nullptr;
  unsigned lane = 0, byte = 0;
};

// Registers of 32 lanes each, of 64 bits for f64. A: for each 16 bytes along k (f64: 32) eight rows, then the next
// eight. B: for each 16 bytes along k. C and D: for each eight rows the even and the odd columns; f16: both together.
// wmma: word i of each lane's part of the packed matrix in register i. Products in quads: as the instruction's
// registers.
struct WideOperands {
  uint32_t* const* d; // may be those of A, B or C
  const uint32_t* const* a;
  const uint32_t* const* b;
  const uint32_t* const* c;
  const uint32_t* metadata; // sparse A
  unsigned selector;
  WideScales a_scales = {}, b_scales = {}; // if the form has scales
};

struct CodeTable; // numbers for each code of a byte

struct WideMethod;

// Products of sixteen rows, of floats, whose operands are decoded once for several of them. Numbers of A (16 * k) and B
// (8 * k) are aligned to 64 bytes; their order is known to these functions alone.
struct WideGroup {
  void (*decode_a)(const WideMethod& method, const WideOperands& operands, float* numbers); // of A and its metadata
  void (*decode_b)(const WideMethod& method, const uint32_t* const* b, float* numbers);
  void (*multiply)(const float* a, const float* b, const uint32_t* const* c, uint32_t* const* d);
};

// A way to carry out products of one form.
struct WideMethod {
  // nullptr: there is none. False, and nothing is done, if the operands are not for this method, which is so for some
  // of f64 and for extreme scales.
  bool (*run)(const WideMethod& method, const WideOperands& operands) = nullptr;
  const WideGroup* group = nullptr; // nullptr: there is none
  const CodeTable* a_table = nullptr;
  const CodeTable* b_table = nullptr;
  bool a_signed = false, saturates = false; // integers
  ir::ScalarType scale_type = ir::ScalarType::none;

  explicit operator bool() const { return run != nullptr; }
};

// None on hosts without the instructions for it.
WideMethod wide_method(const WideForm& form);

} // namespace ptxrewrite::emulator
