#include "emulator/special/shared_matrix.h"

namespace ptxrewrite::emulator {

SharedMatrix shared_matrix(uint64_t descriptor) {
  constexpr uint32_t bytes_by_mode[] = {0, 128, 64, 32};
  const auto field = [&](unsigned first) { return static_cast<uint32_t>(descriptor >> first & 0x3fff) * chunk_bytes; };
  return {field(0), field(16), field(32), static_cast<uint32_t>(descriptor >> 49 & 7), bytes_by_mode[descriptor >> 62]};
}

namespace {

uint32_t swizzled(const SharedMatrix& matrix, uint32_t address) {
  const uint32_t pattern_rows = matrix.swizzle_bytes / chunk_bytes; // a power of two
  const uint32_t row = (address / 128 - matrix.base_offset) & (pattern_rows - 1);
  return address ^ row * chunk_bytes;
}

} // namespace

namespace {

// Without swizzling.
uint32_t linear_address(const SharedMatrix& matrix, bool mn_major, uint32_t row, uint32_t chunk) {
  const uint32_t in_group = row % 8, group = row / 8;
  if (matrix.swizzle_bytes == 0)
    return matrix.start + in_group * chunk_bytes +
           (mn_major ? group * matrix.leading + chunk * matrix.stride : group * matrix.stride + chunk * matrix.leading);
  const uint32_t in_row = mn_major ? matrix.swizzle_bytes / chunk_bytes : UINT32_MAX; // chunks
  return matrix.start + in_group * matrix.swizzle_bytes + group * matrix.stride + chunk % in_row * chunk_bytes +
         chunk / in_row * matrix.leading;
}

} // namespace

uint32_t chunk_address(const SharedMatrix& matrix, bool mn_major, uint32_t row, uint32_t chunk) {
  const uint32_t address = linear_address(matrix, mn_major, row, chunk);
  return matrix.swizzle_bytes == 0 ? address : swizzled(matrix, address);
}

// Addresses grow with row % 8, row / 8 and both parts of the chunk's number; swizzling changes bits 4 to 6.
uint32_t end_of_chunks(const SharedMatrix& matrix, bool mn_major, uint32_t rows, uint32_t chunks) {
  return (linear_address(matrix, mn_major, (rows - 1) | 7, (chunks - 1) | 7) | 127) + 1;
}

} // namespace ptxrewrite::emulator
