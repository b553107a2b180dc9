#include "emulator/tensor_memory/shared_operand.h"

#include "emulator/tiles/matrix_tile.h"

#include <fmt/format.h>

#include <cstring>

namespace ptxrewrite::emulator {

using ir::ScalarType;

std::string read_shared_operand(uint64_t descriptor, bool mn_major, SharedOperand& operand) {
  const auto field = [&](unsigned first, unsigned count) {
    return static_cast<uint32_t>(descriptor >> first & ((uint64_t(1) << count) - 1));
  };
  operand.matrix.start = field(0, 14) * chunk_bytes;
  operand.matrix.leading = field(16, 14) * chunk_bytes;
  operand.matrix.stride = field(32, 14) * chunk_bytes;
  operand.matrix.base_offset = field(49, 3);
  if (field(46, 3) != 1)
    return fmt::format("a matrix descriptor ({:#x}) that is none of tcgen05's: bits 46 to 48 are {}, not 1", descriptor,
                       field(46, 3));
  if (field(52, 1)) return "matrix descriptors with an address for the leading dimension are not emulated";
  switch (field(61, 3)) {
  case 0:
    operand.matrix.swizzle_bytes = 0;
    return {};
  case 1:
    operand.matrix.swizzle_bytes = 128;
    operand.by_pairs = true;
    if (!mn_major) return "a matrix descriptor with a swizzle of 128 bytes by 32 of a matrix that is K-major";
    return {};
  case 2:
    operand.matrix.swizzle_bytes = 128;
    return {};
  case 4:
    operand.matrix.swizzle_bytes = 64;
    return {};
  case 6:
    operand.matrix.swizzle_bytes = 32;
    return {};
  default:
    return fmt::format("a matrix descriptor ({:#x}) with the swizzle {}, which there is not", descriptor, field(61, 3));
  }
}

uint32_t chunk_address(const SharedOperand& operand, bool mn_major, uint32_t row, uint32_t chunk) {
  if (!operand.by_pairs) return chunk_address(operand.matrix, mn_major, row, chunk);
  const SharedMatrix& matrix = operand.matrix;
  const uint32_t address =
      matrix.start + row % 4 * 128 + row / 4 * matrix.stride + chunk % 8 * chunk_bytes + chunk / 8 * matrix.leading;
  return address ^ ((address / 128 - matrix.base_offset) & 3) << 5;
}

unsigned chunk_elements(ScalarType type, bool in_chunks) {
  if (in_chunks && ir::bit_width(type) < 8) return 16;
  return 128 / ir::bit_width(type);
}

void unpack_chunk(unsigned bits, const std::byte* packed, std::byte* bytes) {
  constexpr unsigned elements = 16;
  for (unsigned i = 0; i < elements; ++i) {
    unsigned code = 0;
    for (unsigned bit = 0; bit < bits; ++bit) {
      const unsigned at = i * bits + bit;
      code |= (static_cast<unsigned>(packed[at / 8]) >> at % 8 & 1) << bit;
    }
    bytes[i] = static_cast<std::byte>(bits == 4 ? code << 2 : code);
  }
}

void decode_chunk(ScalarType type, bool in_chunks, const std::byte* bytes, float* numbers) {
  const unsigned bits = ir::bit_width(type);
  if (!in_chunks || bits >= 8) return decode_elements(type, bytes, chunk_elements(type, in_chunks), numbers);
  std::byte unpacked[chunk_bytes];
  unpack_chunk(bits, bytes, unpacked);
  decode_containers(type, unpacked, chunk_bytes, numbers);
}

} // namespace ptxrewrite::emulator
