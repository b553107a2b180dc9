// Heat on a chip, explicit in time: every cell exchanges with its four neighbours and the ambient.
#include "tests/samples/reference.h"

#include <algorithm>

namespace {

constexpr double ambient = 80;

struct Chip {
  int64_t side;
  double step_over_capacitance, lateral_resistance, vertical_resistance;
};

// The boundary is a mirror: an edge cell's missing neighbour has the cell's temperature.
std::vector<double> stepped(const std::vector<double>& now, std::span<const float> power, const Chip& chip) {
  std::vector<double> next(now.size());
  auto at = [&](int64_t row, int64_t column) {
    return now[std::clamp<int64_t>(row, 0, chip.side - 1) * chip.side + std::clamp<int64_t>(column, 0, chip.side - 1)];
  };
  for (int64_t row = 0; row < chip.side; ++row)
    for (int64_t column = 0; column < chip.side; ++column) {
      const double here = at(row, column);
      const double vertical = at(row + 1, column) + at(row - 1, column) - 2 * here;
      const double horizontal = at(row, column + 1) + at(row, column - 1) - 2 * here;
      const double flow = power[row * chip.side + column] + (vertical + horizontal) / chip.lateral_resistance +
                          (ambient - here) / chip.vertical_resistance;
      next[row * chip.side + column] = here + chip.step_over_capacitance * flow;
    }
  return next;
}

} // namespace

REFERENCE(hotspot) {
  const Chip chip{data.value("side"), data.number("time_step") / data.number("capacitance"),
                  data.number("lateral_resistance"), data.number("vertical_resistance")};
  auto power = data.f32("power"), a = data.f32("temperature_a"), b = data.f32("temperature_b");
  std::vector<double> now(a.begin(), a.end());
  for (int64_t launch = 0; launch < data.value("launches"); ++launch) {
    for (int64_t step = 0; step < data.value("steps"); ++step)
      now = stepped(now, power, chip);
    std::ranges::copy(now, launch % 2 == 0 ? b.begin() : a.begin());
  }
  // The kernel rounds to float in every step, an error of about 3e-5 at 340 degrees; a step changes a cell by far more.
  data.tolerate("temperature_a", {.absolute = 1.5e-4});
  data.tolerate("temperature_b", {.absolute = 1e-4});
}
