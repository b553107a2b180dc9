#include "emulator/special/sparse_metadata.h"

#include <algorithm>

namespace ptxrewrite::emulator {

namespace {

constexpr unsigned indices_of_lane = 8, indices_of_four_units = 2;
constexpr unsigned most_lanes = 4; // per row

// Computes the units of a row that its indices select.
void units_of_row(const uint32_t* metadata, unsigned row, unsigned first_lane, unsigned lanes, uint8_t* units) {
  for (unsigned i = 0; i < lanes; ++i) {
    const uint32_t indices = metadata[row % 8 * 4 + (first_lane + i) % 4] >> (row / 8 * 16);
    for (unsigned j = 0; j < indices_of_lane; ++j) // the compiler vectorises this loop
      units[i * indices_of_lane + j] =
          static_cast<uint8_t>((i * indices_of_lane + j) / indices_of_four_units * 4 + (indices >> (2 * j) & 3));
  }
}

} // namespace

void sparse_columns(unsigned element_bits, unsigned k, const uint32_t* metadata, unsigned selector, uint8_t* columns) {
  const unsigned stored = k / 2;
  const unsigned indices = element_bits == 32 ? 2 * stored : element_bits == 4 ? stored / 2 : stored;
  const unsigned lanes = std::clamp(indices / indices_of_lane, 1u, most_lanes);
  for (unsigned row = 0; row < sparse_rows; ++row, columns += stored) {
    uint8_t units[most_lanes * indices_of_lane];
    units_of_row(metadata, row, selector * lanes, lanes, units);
    if (element_bits == 32)
      for (unsigned i = 0; i < stored; ++i)
        columns[i] = units[2 * i] / 2;
    else if (element_bits == 4)
      for (unsigned i = 0; i < stored; ++i)
        columns[i] = static_cast<uint8_t>(units[i / 2] * 2 + i % 2);
    else
      for (unsigned i = 0; i < stored; ++i)
        columns[i] = units[i];
  }
}

} // namespace ptxrewrite::emulator
