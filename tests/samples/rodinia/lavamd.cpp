// Potential and force on every particle from all particles of its own and of neighbouring boxes, in double.
#include "tests/samples/reference.h"

REFERENCE(lavamd) {
  constexpr int in_box = 100;
  constexpr double alpha = 0.5;
  struct Box {
    int32_t first_particle, neighbour_count, neighbours[26];
  };
  struct Place {
    float v, x, y, z;
  };
  auto boxes = data.as<Box>("boxes");
  auto places = data.as<Place>("places"), forces = data.as<Place>("forces");
  auto charges = data.f32("charges");

  for (size_t home = 0; home < boxes.size(); ++home) {
    std::vector<int32_t> near{static_cast<int32_t>(home)};
    near.insert(near.end(), boxes[home].neighbours, boxes[home].neighbours + boxes[home].neighbour_count);
    for (int particle = boxes[home].first_particle; particle < boxes[home].first_particle + in_box; ++particle) {
      const Place& a = places[particle];
      double v = 0, x = 0, y = 0, z = 0;
      for (int32_t box : near)
        for (int other = boxes[box].first_particle; other < boxes[box].first_particle + in_box; ++other) {
          const Place& b = places[other];
          const double product = double{a.x} * b.x + double{a.y} * b.y + double{a.z} * b.z;
          const double distance = double{a.v} + b.v - product;
          const double potential = charges[other] * std::exp(-2 * alpha * alpha * distance);
          v += potential;
          x += 2 * potential * (double{a.x} - b.x);
          y += 2 * potential * (double{a.y} - b.y);
          z += 2 * potential * (double{a.z} - b.z);
        }
      forces[particle] = {static_cast<float>(v), static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)};
    }
  }
  // Float sums of hundreds of terms of size 1, of either sign except for v, with an approximate exponential.
  data.tolerate("forces", {.relative = 1e-5, .absolute = 1e-4});
}
