// Conversion between numbers and the bytes of PTX types.
#pragma once

#include "ir/isa/types.h"
#include "launch/expression.h"

#include <cstddef>
#include <span>
#include <string>

namespace ptxrewrite::launch {

// True for types that buffers and arguments may have: integers and bits of 8 to 64 bits, f16, bf16, f32, f64.
bool is_plain_type(ir::ScalarType type);
// All these types, and their names for messages.
std::span<const ir::ScalarType> plain_types();
std::string plain_type_names();

// Writes `number` to `out` (byte_width(type) bytes, little-endian). Returns "", or the reason of failure: not an
// integer, out of range. Bit types accept the range of both signednesses. Floating point rounds to nearest even.
std::string encode(ir::ScalarType type, const Number& number, std::byte* out);

// The number encoded by these bytes. Bit types are read as unsigned.
Number decode(ir::ScalarType type, const std::byte* bytes);

// Bits of the nearest number, ties to even; infinity on overflow. `from_half` and `from_bfloat` are exact.
uint16_t to_half(double value);
uint16_t to_bfloat(double value);
double from_half(uint16_t bits);
double from_bfloat(uint16_t bits);

} // namespace ptxrewrite::launch
