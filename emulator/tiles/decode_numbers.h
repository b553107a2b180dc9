// Converts elements of matrices to numbers of the host: f32 for every type but f64 and b1, because f32 represents all
// their values exactly; or 16-bit integers for integers of 8 and 4 bits.
#pragma once

#include "ir/isa/types.h"

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::emulator {

// Decodes `count` consecutive packed elements: f16, bf16, f32, tf32 (19 bits of 32), e4m3,
// e5m2, e2m1, and integers of 8 and 4 bits. The first of two 4-bit elements is in the low half of the byte.
void decode_elements(ir::ScalarType type, const std::byte* packed, unsigned count, float* numbers);

// Decodes elements of kind::f8f6f4, one per byte: 6-bit ones in the low bits, 4-bit ones (e2m1) in bits 2 to 5.
void decode_containers(ir::ScalarType type, const std::byte* packed, unsigned count, float* numbers);

// Input of decode_lines(), which decodes as decode_elements (`in_containers`: decode_containers) does: eight lines of
// 16 bytes, line i in a register of the lanes 4 * i to 4 * i + 3; its numbers start at numbers[places[i] * distance].
struct Lines {
  const uint32_t* lanes;
  const uint8_t* places; // eight
  unsigned distance;
};
void decode_lines(ir::ScalarType type, bool in_containers, const Lines& lines, float* numbers);
void decode_integer_lines(ir::ScalarType type, const Lines& lines, int16_t* numbers);

} // namespace ptxrewrite::emulator
