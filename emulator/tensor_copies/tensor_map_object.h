// The emulator's encoding of the 128 bytes of a tensor map, which CUDA leaves opaque. Host code (cuTensorMapEncode*,
// launch files) and kernels (tensormap.replace, tensor copies) of the emulator share it.
//
// Sixteen words of 64 bits, little endian. Word 0: a mark in the high half, fields of a few bits in the low half. Then
// the address, five dimensions, four strides, five boxes (16 bits each, from word 11 on) and element strides (8 bits
// each), three lower and three upper corners (16 bits each), channels and pixels (16 bits each). All bytes zero is a
// map without any field set: kernels that build maps themselves start with it.
#pragma once

#include "ir/isa/tensor_map.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace ptxrewrite::emulator {

using TensorMapObject = std::array<std::byte, ir::tensor_map_bytes>;

// Numbers that do not fit a field are stored as the field's largest value, which no legal map has.
TensorMapObject encode_tensor_map(const ir::TensorMap& map);

// Reads any bytes into `map`, which need not be legal. Returns a message if the bytes are no map, else an empty string.
std::string read_tensor_map(std::span<const std::byte, ir::tensor_map_bytes> bytes, ir::TensorMap& map);

} // namespace ptxrewrite::emulator
