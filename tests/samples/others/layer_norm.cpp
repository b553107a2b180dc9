// Normalises every row to mean 0 and variance 1, scales and shifts it, by the two-pass definition in double precision.
#include "tests/samples/reference.h"

#include <cmath>
#include <numeric>

REFERENCE(layer_norm) {
  const std::size_t columns = data.value("columns");
  const double epsilon = data.number("epsilon");
  const auto source = data.f32("source");
  const auto scale = data.f32("scale");
  const auto shift = data.f32("shift");
  const auto result = data.f32("result");

  for (std::size_t first = 0; first < source.size(); first += columns) {
    const auto row = source.subspan(first, columns);
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / columns;
    double variance = 0;
    for (const double value : row) {
      variance += (value - mean) * (value - mean) / columns;
    }
    for (std::size_t i = 0; i < columns; ++i) {
      result[first + i] = static_cast<float>((row[i] - mean) / std::sqrt(variance + epsilon) * scale[i] + shift[i]);
    }
  }

  // Running moments in single precision and an approximate reciprocal root, of results up to 8.
  data.tolerate("result", {.absolute = 1e-5});
}
