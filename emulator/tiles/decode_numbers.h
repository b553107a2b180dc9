// Elements of matrices as numbers of the host: f32 for every type but f64 and b1, whose values all are numbers of f32,
// or 16-bit integers for integers of 8 and 4 bits.
#pragma once

#include "ir/isa/types.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator {

// The numbers of `count` elements that lie packed one behind the other: f16, bf16, f32, tf32 (19 bits of 32), e4m3,
// e5m2, e2m1, and integers of 8 and 4 bits. Of two elements of 4 bits in a byte the first one is in its low half.
void decode_elements(ir::ScalarType type, const std::byte* packed, unsigned count, float* numbers);

// Elements of kind::f8f6f4, each in a byte: of 6 bits in its low bits, of 4 bits (e2m1) in bits 2 to 5.
void decode_containers(ir::ScalarType type, const std::byte* packed, unsigned count, float* numbers);

// How decode_elements (`in_containers`: decode_containers) reads elements, for eight lines of 16 bytes: line i is what
// the lanes 4 * i to 4 * i + 3 hold in a register; its numbers go to numbers[place(i) * distance] and behind.
struct Lines {
  const uint32_t* lanes;
  const uint8_t* places; // eight
  unsigned distance;
};
void decode_lines(ir::ScalarType type, bool in_containers, const Lines& lines, float* numbers);
void decode_integer_lines(ir::ScalarType type, const Lines& lines, int16_t* numbers);

} // namespace ptxrewrite::emulator
