// The cells of tensor memory that a warp's registers map to in tcgen05.ld and tcgen05.st (PTX ISA 9.7.16.2.3, "Data
// movement shape"; CUTLASS's cute/atom/copy_traits_sm100.hpp has the same as shapes and strides).
//
// With a shape of 16 lanes and w columns of 32 bits, register i of lane t is in repetition i / (w / 2), each w
// columns after the last; for 16x64b, 16x128b and 16x256b in lanes t / 4 and t / 4 + 8 of tensor memory. .pack::16b and
// .unpack::16b: a register holds the low halves of two adjacent columns.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

enum class TransferShape : uint8_t { lanes32, lanes16_64b, lanes16_128b, lanes16_256b, lanes16_32b_twice };

struct TransferPlace {
  uint32_t lane = 0;      // relative to the address
  uint32_t column = 0;    // relative to the address; without packing
  bool is_second = false; // lanes16_32b_twice: in the second half, which has a column offset
};

constexpr uint32_t transfer_lanes(TransferShape shape) {
  return shape == TransferShape::lanes32 ? 32 : 16;
}
// Number of columns of `registers` registers.
constexpr uint32_t transfer_columns(TransferShape shape, uint32_t registers) {
  switch (shape) {
  case TransferShape::lanes32:
  case TransferShape::lanes16_32b_twice:
    return registers;
  case TransferShape::lanes16_64b:
  case TransferShape::lanes16_128b:
  case TransferShape::lanes16_256b:
    return registers * 2;
  }
  return registers;
}
// Number of registers of the shape with .x1.
constexpr uint32_t transfer_registers(TransferShape shape) {
  return shape == TransferShape::lanes16_256b ? 4 : shape == TransferShape::lanes16_128b ? 2 : 1;
}

constexpr TransferPlace transfer_place(TransferShape shape, uint32_t thread, uint32_t index) {
  switch (shape) {
  case TransferShape::lanes32:
    return {thread, index, false};
  case TransferShape::lanes16_32b_twice:
    return {thread % 16, index, thread >= 16};
  case TransferShape::lanes16_64b:
    return {thread / 4 + thread % 2 * 8, index * 2 + thread / 2 % 2, false};
  case TransferShape::lanes16_128b:
    return {thread / 4 + index % 2 * 8, index / 2 * 4 + thread % 4, false};
  case TransferShape::lanes16_256b:
    return {thread / 4 + index / 2 % 2 * 8, index / 4 * 8 + thread % 4 * 2 + index % 2, false};
  }
  return {};
}

} // namespace ptxrewrite::emulator
