// The swizzles of tensor copies, exhaustively for one pattern each: by the tables of PTX ISA 5.5.7 and by CuTe's
// Swizzle<B, M, S>.
#include "emulator/tensor_copies/swizzle.h"

#include "tests/unit/emulator/tensor_copies/tensor_statement.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

namespace ptxrewrite::emulator::swizzle_test {
namespace {

// PTX ISA 5.5.7: destinations of the 16-byte chunks of a line; the rows repeat from line to line.
using Table = std::vector<std::array<uint32_t, 8>>;
const Table tables[] = {
    {{0, 1, 2, 3, 4, 5, 6, 7}},
    {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}},
    {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4}},
    {{0, 1, 2, 3, 4, 5, 6, 7},
     {1, 0, 3, 2, 5, 4, 7, 6},
     {2, 3, 0, 1, 6, 7, 4, 5},
     {3, 2, 1, 0, 7, 6, 5, 4},
     {4, 5, 6, 7, 0, 1, 2, 3},
     {5, 4, 7, 6, 1, 0, 3, 2},
     {6, 7, 4, 5, 2, 3, 0, 1},
     {7, 6, 5, 4, 3, 2, 1, 0}},
    {{0, 1, 2, 3, 4, 5, 6, 7}, {2, 3, 0, 1, 6, 7, 4, 5}, {4, 5, 6, 7, 0, 1, 2, 3}, {6, 7, 4, 5, 2, 3, 0, 1}},
    {{0, 1, 2, 3, 4, 5, 6, 7}, {2, 3, 0, 1, 6, 7, 4, 5}, {4, 5, 6, 7, 0, 1, 2, 3}, {6, 7, 4, 5, 2, 3, 0, 1}},
    {{0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 6, 7, 0, 1, 2, 3}},
};
constexpr int flipped = 5; // CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B

TEST_CASE("swizzles: the manual's tables and CuTe's algebra") {
  for (int mode = 0; mode < 7; ++mode) {
    CAPTURE(mode);
    const ir::TensorSwizzle named = *ir::tensor_swizzle_of_cuda(mode);
    const Swizzle swizzle = swizzle_of(named.span, named.atom);
    const Table& table = tables[mode];
    std::set<uint32_t> taken;
    for (uint32_t address = 0; address < 4096; ++address) {
      const uint32_t line = address / 128, chunk = address / 16 % 8;
      uint32_t in_chunk = address % 16;
      if (mode == flipped && line % 2 == 1) in_chunk ^= 8;
      const uint32_t expected = line * 128 + table[line % table.size()][chunk] * 16 + in_chunk;
      const uint32_t found = swizzled(swizzle, address);
      if (found != expected || found != tensor_statement::shared_address(mode, address)) {
        CAPTURE(address);
        CHECK(found == expected);
        CHECK(found == tensor_statement::shared_address(mode, address));
      }
      taken.insert(found);
    }
    CHECK(taken.size() == 4096); // no two bytes share an address
    // Bytes that the copy assumes to be adjacent are adjacent.
    const uint32_t granule = swizzle.granule();
    for (uint32_t address = 0; address < 4096; ++address)
      if (address % granule != 0) REQUIRE(swizzled(swizzle, address) == swizzled(swizzle, address - 1) + 1);
  }
}

} // namespace
} // namespace ptxrewrite::emulator::swizzle_test
