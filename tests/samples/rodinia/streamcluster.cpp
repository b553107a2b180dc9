// For every point: the gain of moving it to the candidate, if positive; else the loss of its centre by closing.
#include "tests/samples/reference.h"

REFERENCE(streamcluster) {
  struct Point {
    float weight, cost;
    int64_t centre;
  };
  const int64_t points = data.value("points"), candidate = points / 2, centres = data.value("open_centres");
  auto point = data.as<Point>("point");
  auto coordinates = data.f32("coordinates"), work = data.f32("work");
  auto table = data.s32("table_of_centres");
  auto moves = data.s8("moves");
  for (int64_t k = 0; k < points; ++k) {
    float squared = 0;
    for (int64_t dimension = 0; dimension < data.value("dimensions"); ++dimension) {
      const float difference = coordinates[dimension * points + k] - coordinates[dimension * points + candidate];
      squared = std::fma(difference, difference, squared);
    }
    // All weights are 1, so fusing this product or not makes no difference.
    const float change = squared * point[k].weight - point[k].cost;
    const auto gains = work.subspan(k * (centres + 1), centres + 1);
    moves[k] = change < 0;
    if (change < 0)
      gains[centres] = change;
    else
      gains[table[point[k].centre]] -= change;
  }
}
