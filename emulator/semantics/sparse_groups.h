// Vectors with few nonzero elements in each group (PTX ISA 9.4: spcompress, spdecompress, tcgen05.ld with .spcompress):
// the choice of two out of four, and the packing of their indices. Elements and indices are packed from bit 0 up, those
// of a group in ascending order of index.
#pragma once

#include "emulator/semantics/narrow_numbers.h"

#include <array>
#include <cmath>
#include <optional>
#include <span>

namespace ptxrewrite::emulator::semantics {

inline constexpr unsigned sparse_group = 4; // elements, of which two are kept

namespace detail {
// A NaN comes before all numbers, and -0 is below +0.
inline bool comes_before(double a, double b, bool takes_max) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  if (a == b) return takes_max ? std::signbit(b) && !std::signbit(a) : std::signbit(a) && !std::signbit(b);
  return takes_max ? a > b : a < b;
}
} // namespace detail

// The indices of the two greatest or least of four values, ascending. Of equal ones the first (the manual leaves it
// open).
inline std::array<unsigned, 2> two_of_four(const std::array<double, sparse_group>& values, bool takes_max) {
  std::array<unsigned, 2> kept = {};
  unsigned found = 0;
  for (unsigned i = 0; i < sparse_group; ++i) {
    unsigned before = 0;
    for (unsigned other = 0; other < sparse_group; ++other)
      before += detail::comes_before(values[other], values[i], takes_max) ||
                (other < i && !detail::comes_before(values[i], values[other], takes_max));
    if (before < 2) kept[found++] = i;
  }
  return kept;
}

inline uint32_t packed_field(std::span<const uint32_t> words, unsigned number, unsigned bits) {
  const unsigned at = number * bits;
  return words[at / 32] >> at % 32 & ((1u << bits) - 1);
}
inline void set_packed_field(std::span<uint32_t> words, unsigned number, unsigned bits, uint32_t value) {
  const unsigned at = number * bits;
  words[at / 32] = (words[at / 32] & ~(((1u << bits) - 1) << at % 32)) | value << at % 32;
}

// The register operand of spcompress: bits 0 and 1 choose max, max of magnitudes, min, min of magnitudes; bits 2 to 4
// the type of elements.
struct SparseChoice {
  bool takes_max = true, of_magnitudes = false;
  unsigned type = 0;
};
// Returns nullopt for reserved types and bits.
constexpr std::optional<SparseChoice> sparse_choice(uint32_t descriptor, unsigned element_bits) {
  const unsigned type = descriptor >> 2;
  if (type >= (element_bits == 16 ? 2u : 6u)) return std::nullopt;
  return SparseChoice{(descriptor & 2) == 0, (descriptor & 1) != 0, type};
}

inline double sparse_element(uint32_t code, unsigned element_bits, unsigned type) {
  if (element_bits == 16) return value_of(type == 0 ? NarrowKind::f16 : NarrowKind::bf16, code);
  constexpr NarrowKind floats[] = {NarrowKind::e5m2, NarrowKind::e4m3, NarrowKind::e3m2, NarrowKind::e2m3};
  if (type >= 2) return value_of(floats[type - 2], code);
  return type == 0 ? static_cast<double>(code) : static_cast<double>(static_cast<int8_t>(code));
}

// `kept` and `indices` are zero before.
inline void compress_groups(std::span<const uint32_t> data, unsigned element_bits, unsigned index_bits,
                            const SparseChoice& choice, std::span<uint32_t> kept, std::span<uint32_t> indices) {
  const auto groups = static_cast<unsigned>(data.size()) * 32 / element_bits / sparse_group;
  for (unsigned group = 0; group < groups; ++group) {
    std::array<uint32_t, sparse_group> codes;
    std::array<double, sparse_group> values;
    for (unsigned i = 0; i < sparse_group; ++i) {
      codes[i] = packed_field(data, group * sparse_group + i, element_bits);
      values[i] = sparse_element(codes[i], element_bits, choice.type);
      if (choice.of_magnitudes) values[i] = std::fabs(values[i]);
    }
    const std::array<unsigned, 2> two = two_of_four(values, choice.takes_max);
    for (unsigned i = 0; i < 2; ++i) {
      set_packed_field(kept, group * 2 + i, element_bits, codes[two[i]]);
      set_packed_field(indices, group * 2 + i, index_bits, two[i]);
    }
  }
}

struct SparseRatio {
  unsigned kept = 2, of = 4;
};
// `data` is zero before. Of elements with one index the last one stays. Returns false if an index is not below
// ratio.of.
inline bool decompress_groups(std::span<const uint32_t> kept, std::span<const uint32_t> indices, unsigned element_bits,
                              unsigned index_bits, SparseRatio ratio, unsigned groups, std::span<uint32_t> data) {
  for (unsigned i = 0; i < groups * ratio.kept; ++i) {
    const uint32_t index = packed_field(indices, i, index_bits);
    if (index >= ratio.of) return false;
    set_packed_field(data, i / ratio.kept * ratio.of + index, element_bits, packed_field(kept, i, element_bits));
  }
  return true;
}

} // namespace ptxrewrite::emulator::semantics
