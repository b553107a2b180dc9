// Scores of circles, maxima in discs and diffused edge maps from their definitions, in double.
#include "tests/samples/reference.h"

#include <algorithm>
#include <numbers>

namespace {

struct Circles {
  std::span<const float> sines, cosines;
  std::span<const int32_t> x, y;
};

// The greatest mean^2 / variance of the outward gradient along a circle around a pixel.
double score(const Circles& circles, std::span<const float> x, std::span<const float> y, int64_t rows, int64_t centre) {
  const size_t samples = circles.sines.size();
  double best = 0;
  for (size_t first = 0; first < circles.x.size(); first += samples) {
    std::vector<double> outward;
    for (size_t k = 0; k < samples; ++k) {
      const int64_t here = centre + circles.x[first + k] * rows + circles.y[first + k];
      outward.push_back(double{x[here]} * circles.cosines[k] + double{y[here]} * circles.sines[k]);
    }
    double mean = 0, variance = 0;
    for (double value : outward)
      mean += value / static_cast<double>(samples);
    for (double value : outward)
      variance += (value - mean) * (value - mean) / static_cast<double>(samples - 1);
    best = std::max(best, mean * mean / variance);
  }
  return best;
}

struct Field {
  int64_t rows, columns;
  std::vector<double> values, edges;

  // The image is extended by its border.
  double at(int64_t row, int64_t column) const {
    return values[std::clamp<int64_t>(row, 0, rows - 1) * columns + std::clamp<int64_t>(column, 0, columns - 1)];
  }

  // One round for motion along both axes; returns the mean change.
  double diffuse() {
    std::vector<double> next = values;
    double change = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        double& value = next[row * columns + column];
        const double old = value, edge = edges[row * columns + column];
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) {
            const double difference = at(row + dy, column + dx) - old;
            value += 0.1 * (std::atan(difference * (dx + dy) * 1e10) / std::numbers::pi + 0.5) * difference;
          }
        value -= 0.2 * edge * (value - edge);
        change += std::abs(value - old);
      }
    values = next;
    return change / static_cast<double>(rows * columns);
  }
};

} // namespace

REFERENCE(leukocyte) {
  const int64_t rows = data.value("rows"), columns = data.value("columns");
  auto x = data.f32("gradient_x"), y = data.f32("gradient_y"), scores = data.f32("scores");
  const Circles circles{data.f32("sines"), data.f32("cosines"), data.s32("circle_x"), data.s32("circle_y")};
  for (int64_t column = 22; column < columns - 22; ++column)
    for (int64_t row = 22; row < rows - 22; ++row)
      scores[column * rows + row] = static_cast<float>(score(circles, x, y, rows, column * rows + row));
  // Sums of 150 terms, each rounded to float, that nearly cancel.
  data.tolerate("scores", {.relative = 5e-6});

  auto dilated = data.f32("dilated");
  const int64_t threads = 176 * std::min(data.value("blocks_dilated"), data.value("most_blocks_dilated"));
  for (int64_t pixel = 0; pixel < std::min(threads, rows * columns); ++pixel) {
    float& greatest = dilated[pixel % rows * columns + pixel / rows];
    for (int64_t dy = -12; dy <= 12; ++dy)
      for (int64_t dx = -12; dx <= 12; ++dx) {
        const int64_t row = pixel % rows + dy, column = pixel / rows + dx;
        if (dx * dx + dy * dy <= 144 && row >= 0 && row < rows && column >= 0 && column < columns)
          greatest = std::max(greatest, scores[column * rows + row]);
      }
  }
  data.tolerate("dilated", {.relative = 5e-6});

  auto fields = data.f32("fields"), edges = data.f32("edges");
  auto shapes = data.s32("cell_shapes"), rounds = data.s32("rounds");
  for (size_t cell = 0; cell < rounds.size(); ++cell) {
    const int64_t start = shapes[3 * cell], count = int64_t{shapes[3 * cell + 1]} * shapes[3 * cell + 2];
    Field field{shapes[3 * cell + 1], shapes[3 * cell + 2], {}, {}};
    field.values.assign(fields.begin() + start, fields.begin() + start + count);
    field.edges.assign(edges.begin() + start, edges.begin() + start + count);
    bool converged = false;
    for (; !converged && rounds[cell] < data.value("most_rounds"); ++rounds[cell])
      converged = field.diffuse() < data.number("enough");
    std::ranges::copy(field.values, fields.begin() + start);
  }
  // Each round rounds pixels below 1 to float; later ones average the errors.
  data.tolerate("fields", {.absolute = 1e-6});
}
