// Address of a matrix element in shared memory that a matrix descriptor of wgmma describes (PTX ISA 9.7.15.5.1,
// "Shared Memory Matrix Layout" and "Matrix Descriptor Format").
//
// A descriptor contains, in units of 16 bytes, the start address (bits 0-13), the leading dimension offset (16-29) and
// the stride dimension offset (32-45), and plain numbers: the base offset (49-51) and the swizzle mode (62-63: none,
// 128, 64 or 32 bytes). The smallest contiguous unit is 16 bytes, a chunk: elements along k (K-major) or
// along rows of A and columns of B (MN-major, 16-bit types only). Chunk addresses, in bytes from the start address:
//
//   K-major, no swizzle:   row % 8 * 16 + row / 8 * stride + chunk * leading
//   K-major, swizzle S:    row % 8 * S + row / 8 * stride + chunk * 16
//   MN-major, no swizzle:  k % 8 * 16 + k / 8 * leading + chunk * stride
//   MN-major, swizzle S:   k % 8 * S + k / 8 * stride + chunk % (S / 16) * 16 + chunk / (S / 16) * leading
//
// where chunk counts chunks along the major dimension. Swizzling changes the resulting address: 1, 2 or 3 of its bits
// from bit 4 on (for 32, 64 and 128 bytes) are exclusive-ored with as many bits from bit 7 on. The base offset is
// subtracted from the latter first: the row of 128 bytes at which a pattern starts that is not aligned to its own size.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

struct SharedMatrix {
  uint32_t start = 0, leading = 0, stride = 0; // bytes
  uint32_t base_offset = 0;                    // rows of 128 bytes
  uint32_t swizzle_bytes = 0;                  // 0: none
};

inline constexpr uint32_t chunk_bytes = 16;

SharedMatrix shared_matrix(uint64_t descriptor);

namespace detail {

inline uint32_t swizzled(const SharedMatrix& matrix, uint32_t address) {
  const uint32_t pattern_rows = matrix.swizzle_bytes / chunk_bytes; // a power of two
  const uint32_t row = (address / 128 - matrix.base_offset) & (pattern_rows - 1);
  return address ^ row * chunk_bytes;
}

// Without swizzling.
inline uint32_t linear_address(const SharedMatrix& matrix, bool mn_major, uint32_t row, uint32_t chunk) {
  const uint32_t in_group = row % 8, group = row / 8;
  if (matrix.swizzle_bytes == 0)
    return matrix.start + in_group * chunk_bytes +
           (mn_major ? group * matrix.leading + chunk * matrix.stride : group * matrix.stride + chunk * matrix.leading);
  const uint32_t address = matrix.start + in_group * matrix.swizzle_bytes + group * matrix.stride;
  if (!mn_major) return address + chunk * chunk_bytes;
  const uint32_t in_row = matrix.swizzle_bytes / chunk_bytes; // chunks
  return address + chunk % in_row * chunk_bytes + chunk / in_row * matrix.leading;
}

} // namespace detail

// Returns the address of a chunk: the `chunk`-th along k of row `row`; with `mn_major` the `chunk`-th along the
// rows of A or columns of B, at index `row` along k. Below 2^32; a multiple of 16.
inline uint32_t chunk_address(const SharedMatrix& matrix, bool mn_major, uint32_t row, uint32_t chunk) {
  const uint32_t address = detail::linear_address(matrix, mn_major, row, chunk);
  return matrix.swizzle_bytes == 0 ? address : detail::swizzled(matrix, address);
}
// An upper bound of the addresses at which chunks end, of the first `rows` rows (more than none) and `chunks` chunks.
uint32_t end_of_chunks(const SharedMatrix& matrix, bool mn_major, uint32_t rows, uint32_t chunks);

} // namespace ptxrewrite::emulator
