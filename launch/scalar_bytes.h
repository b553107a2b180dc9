// Numbers as the bytes of a PTX type.
#pragma once

#include "ir/isa/types.h"
#include "launch/expression.h"

#include <cstddef>
#include <span>
#include <string>

namespace ptxrewrite::launch {

// Can buffers and arguments have this type? The integers and bits of 8 to 64 bits, f16, bf16, f32, f64.
bool is_plain_type(ir::ScalarType type);
// All of them, and their names for messages.
std::span<const ir::ScalarType> plain_types();
std::string plain_type_names();

// Writes `number` at `out` (byte_width(type) bytes, little-endian). "" or why it cannot be: no integer, out of range.
// Bit types take what either signedness of their width takes. Floating point rounds to nearest even.
std::string encode(ir::ScalarType type, const Number& number, std::byte* out);

// The number whose bytes these are. Bit types read as unsigned.
Number decode(ir::ScalarType type, const std::byte* bytes);

// Bits of the nearest number, ties to even; overflow gives infinity. `from_half` and `from_bfloat` are exact.
uint16_t to_half(double value);
uint16_t to_bfloat(double value);
double from_half(uint16_t bits);
double from_bfloat(uint16_t bits);

} // namespace ptxrewrite::launch
