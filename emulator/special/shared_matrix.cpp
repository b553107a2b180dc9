#include "emulator/special/shared_matrix.h"

namespace ptxrewrite::emulator {

SharedMatrix shared_matrix(uint64_t descriptor) {
  constexpr uint32_t bytes_by_mode[] = {0, 128, 64, 32};
  const auto field = [&](unsigned first) { return static_cast<uint32_t>(descriptor >> first & 0x3fff) * chunk_bytes; };
  return {field(0), field(16), field(32), static_cast<uint32_t>(descriptor >> 49 & 7), bytes_by_mode[descriptor >> 62]};
}

// Addresses grow with row % 8, row / 8 and both parts of the chunk's number; swizzling changes bits 4 to 6.
uint32_t end_of_chunks(const SharedMatrix& matrix, bool mn_major, uint32_t rows, uint32_t chunks) {
  return (detail::linear_address(matrix, mn_major, (rows - 1) | 7, (chunks - 1) | 7) | 127) + 1;
}

} // namespace ptxrewrite::emulator
