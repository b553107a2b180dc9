#include "emulator/special/sparse_metadata.h"

namespace ptxrewrite::emulator {

void sparse_columns(unsigned element_bits, unsigned k, const uint32_t* metadata, unsigned selector, uint8_t* columns) {
  constexpr unsigned indices_of_lane = 8, indices_of_four_units = 2;
  const unsigned stored = k / 2;
  const unsigned indices = element_bits == 32 ? 2 * stored : element_bits == 4 ? stored / 2 : stored;
  const unsigned lanes = indices > indices_of_lane ? indices / indices_of_lane : 1;
  for (unsigned row = 0; row < sparse_rows; ++row)
    for (unsigned i = 0; i < stored; ++i) {
      const unsigned number = element_bits == 32 ? 2 * i : element_bits == 4 ? i / 2 : i;
      const unsigned lane = row % 8 * 4 + (selector * lanes + number / indices_of_lane) % 4;
      const unsigned index = metadata[lane] >> (row / 8 * 16 + number % indices_of_lane * 2) & 3;
      const unsigned unit = number / indices_of_four_units * 4 + index;
      const unsigned column = element_bits == 32 ? unit / 2 : element_bits == 4 ? unit * 2 + i % 2 : unit;
      columns[row * stored + i] = static_cast<uint8_t>(column);
    }
}

} // namespace ptxrewrite::emulator
