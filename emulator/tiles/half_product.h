// The most frequent matrix products, mma.m16n8k16 and m16n8k8 of f16 and bf16, straight from the lanes' registers: the
// arithmetic of multiply_tile() (matrix_tile.h) without its passes over memory. Lines of the matrices lie in registers
// as decode_lines() has them.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

// Registers of 32 lanes each. A: eight rows, then the next eight, for each eight elements along k. B: for each eight
// elements along k. C and D: f32: for each eight rows the even and the odd columns; f16: for each eight rows.
struct HalfProduct {
  bool is_bf16 = false;
  bool has_half_sums = false; // of f16
  unsigned parts = 2;         // eight elements along k each, at most two
  const uint32_t* a[4] = {};
  const uint32_t* b[2] = {};
  const uint32_t* c[4] = {};
  uint32_t* d[4] = {}; // may be those of A, B or C
};

// False on hosts without the instructions for it: nothing is done.
bool multiply_halves(const HalfProduct& product);

} // namespace ptxrewrite::emulator
