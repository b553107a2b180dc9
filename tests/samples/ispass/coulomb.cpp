// Coulomb's law summed over the atoms in double precision.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(coulomb) {
  const int columns = data.value("columns");
  const int rows = data.value("rows");
  const int count = data.value("atom_count");
  const double spacing = data.number("spacing");
  const auto atoms = data.f32("atoms");
  const auto potential = data.f32("potential");

  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      double sum = potential[row * columns + column];
      for (int atom = 0; atom < count; ++atom) {
        const double dx = column * spacing - atoms[4 * atom];
        const double dy = row * spacing - atoms[4 * atom + 1];
        const double height_squared = atoms[4 * atom + 2];
        sum += atoms[4 * atom + 3] / std::sqrt(dx * dx + dy * dy + height_squared);
      }
      potential[row * columns + column] = static_cast<float>(sum);
    }
  }

  // An approximate reciprocal root and one rounding per atom.
  data.tolerate("potential", {.relative = 1e-5, .absolute = 2e-5});
}
