// Matrices in shared memory that descriptors of tcgen05 describe (PTX ISA 9.7.16.4.1, "Shared memory
// descriptor"; CUTLASS's cute/arch/mma_sm100_desc.hpp has the same fields).
//
// A descriptor contains, in units of 16 bytes, the start address (bits 0-13), the leading dimension offset (16-29) and
// the stride dimension offset (32-45); the number 1 (46-48), the base offset (49-51), whether the leading dimension is
// an address (52), and the swizzle (61-63: 0 none, 1 128 bytes by 32, 2 128 bytes, 4 64 bytes, 6 32 bytes). Chunks of
// 16 bytes have the addresses of wgmma: emulator/special/shared_matrix.h. With a swizzle of 128 bytes by 32, only for
// MN-major matrices, a pattern has four lines, and pairs of chunks are exchanged: bits 5 and 6 of the address are
// exclusive-ored with bits 7 and 8.
//
// Elements of 4 and 6 bits of kind::f8f6f4 and kind::mxf8f6f4 are packed, 16 of them in a chunk, followed by padding.
#pragma once

#include "emulator/special/shared_matrix.h"
#include "ir/isa/types.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ptxrewrite::emulator {

struct SharedOperand {
  SharedMatrix matrix;
  bool by_pairs = false; // the swizzle of 128 bytes by 32
};

// Decodes a shared memory descriptor. Returns a message if it is illegal, else an empty string.
std::string read_shared_operand(uint64_t descriptor, bool mn_major, SharedOperand& operand);

// Byte address of a 16-byte chunk, swizzled (as chunk_address of special/shared_matrix.h).
uint32_t chunk_address(const SharedOperand& operand, bool mn_major, uint32_t row, uint32_t chunk);

// Number of elements in a 16-byte chunk in shared memory. `in_chunks`: a chunk has 16 elements also of 4 and 6 bits.
unsigned chunk_elements(ir::ScalarType type, bool in_chunks);
void decode_chunk(ir::ScalarType type, bool in_chunks, const std::byte* bytes, float* numbers);

// Expands 16 packed elements of 4 or 6 bits and their padding to a byte each, as in tensor memory: 6 bits in the low
// bits, 4 bits in bits 2 to 5.
void unpack_chunk(unsigned bits, const std::byte* packed, std::byte* bytes);

} // namespace ptxrewrite::emulator
