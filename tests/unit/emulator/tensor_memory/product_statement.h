// Layouts of operands and sums of tcgen05.mma in CuTe's terms: operands in shared memory as in CUTLASS's
// cute/arch/mma_sm100_desc.hpp, sums in tensor memory as in cute/atom/mma_traits_sm100_frag.hpp.
#pragma once

#include "tests/unit/emulator/cute_mode.h"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator::tensor_memory_test {

using emulator_test::any;
using emulator_test::Mode;

// CuTe's Swizzle<bits, base, shift>.
inline uint32_t swizzle(uint32_t address, unsigned bits, unsigned base, unsigned shift) {
  const uint32_t mask = ((1u << bits) - 1) << (base + shift);
  return address ^ (address & mask) >> shift;
}

enum class Swizzle : uint8_t { none, by_pairs, b128, b64, b32 };

struct Layout {
  Mode mn, k; // bytes
  Swizzle swizzles = Swizzle::none;
  uint32_t address(uint32_t start, uint32_t row, uint32_t column) const {
    const uint32_t at = start + mn.offset(row) + k.offset(column);
    switch (swizzles) {
    case Swizzle::none:
      return at;
    case Swizzle::by_pairs:
      return swizzle(at, 2, 5, 2);
    case Swizzle::b128:
      return swizzle(at, 3, 4, 3);
    case Swizzle::b64:
      return swizzle(at, 2, 4, 3);
    case Swizzle::b32:
      return swizzle(at, 1, 4, 3);
    }
    return at;
  }
};

inline uint32_t line_chunks(Swizzle swizzles) { // of 16 bytes
  return swizzles == Swizzle::none ? 1 : swizzles == Swizzle::b32 ? 2 : swizzles == Swizzle::b64 ? 4 : 8;
}

// The canonical layouts in the comment of make_umma_desc, in bytes.
inline Layout canonical_layout(bool mn_major, Swizzle swizzles, uint32_t bytes, uint32_t leading, uint32_t stride) {
  const uint32_t t = 16 / bytes, w = line_chunks(swizzles);
  if (!mn_major)
    return {{{{8, 16 * w}, {any, stride}}}, {{{t, bytes}, {any, swizzles == Swizzle::none ? leading : 16}}}, swizzles};
  if (swizzles == Swizzle::none) return {{{{t, bytes}, {any, stride}}}, {{{8, 16}, {any, leading}}}, swizzles};
  const uint32_t lines = swizzles == Swizzle::by_pairs ? 4 : 8;
  return {{{{t, bytes}, {w, 16}, {any, leading}}}, {{{lines, 16 * w}, {any, stride}}}, swizzles};
}

inline uint64_t descriptor(uint32_t start, uint32_t leading, uint32_t stride, Swizzle swizzles) {
  const uint64_t mode = swizzles == Swizzle::none       ? 0
                        : swizzles == Swizzle::by_pairs ? 1
                        : swizzles == Swizzle::b128     ? 2
                        : swizzles == Swizzle::b64      ? 4
                                                        : 6;
  return uint64_t(start >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | uint64_t(1) << 46 |
         mode << 61;
}

// Lane + 128 * column of an element of D, for one block.
struct SumLayout {
  Mode row, column;
  std::pair<uint32_t, uint32_t> place(uint32_t m, uint32_t n) const {
    const uint32_t at = row.offset(m) + column.offset(n);
    return {at % 128, at / 128};
  }
};

// By rows of a block, as in tmem_frg and tmem_frg_ws.
inline SumLayout sum_layout(unsigned rows, unsigned n, bool halves_apart) {
  if (rows == 128) return {{{{128, 1}}}, {{{any, 128}}}};
  if (rows == 32) return {{{{32, 1}}}, {{{n / 4, 128}, {4, 32}}}};
  if (halves_apart) return {{{{64, 1}}}, {{{n / 2, 128}, {2, 64}}}};
  return {{{{16, 1}, {4, 32}}}, {{{any, 128}}}};
}

inline std::vector<uint32_t> random_cells(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> cells(count);
  for (uint32_t& cell : cells)
    cell = static_cast<uint32_t>(random());
  return cells;
}

} // namespace ptxrewrite::emulator::tensor_memory_test
