// The 128 bytes of a tensor map as the emulator has them. CUDA leaves them open; host code (cuTensorMapEncode*, launch
// files) and kernels (tensormap.replace, tensor copies) of the emulator meet here.
//
// Sixteen words of 64 bits, little endian. Word 0: a mark in the high half, fields of a few bits in the low one. Then
// the address, five dimensions, four strides, five boxes (16 bits each, from word 11 on) and element strides (8 bits
// each), three lower and three upper corners (16 bits each), channels and pixels (16 bits each). All bytes zero is a
// map that lacks everything: kernels that build maps themselves start from it.
#pragma once

#include "ir/isa/tensor_map.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace ptxrewrite::emulator {

using TensorMapObject = std::array<std::byte, ir::tensor_map_bytes>;

// Numbers beyond what a field holds are kept as its largest one, which no legal map has.
TensorMapObject encode_tensor_map(const ir::TensorMap& map);

// Of any bytes. What is wrong with them; empty: `map` is what they say, which need not be a legal map.
std::string read_tensor_map(std::span<const std::byte, ir::tensor_map_bytes> bytes, ir::TensorMap& map);

} // namespace ptxrewrite::emulator
