// Tracks points by the greatest normalised cross-correlation of their templates, from its definition, in double.
#include "tests/samples/reference.h"

#include <algorithm>

namespace {

constexpr int reach = 8, search = 8, side = 2 * reach + 1, cells = side * side;
using Patch = std::vector<double>;

struct Frame {
  std::span<const float> pixels;
  int64_t rows, columns;

  // The image is extended by its border.
  double at(int64_t row, int64_t column) const {
    return pixels[std::clamp<int64_t>(row, 0, rows - 1) * columns + std::clamp<int64_t>(column, 0, columns - 1)];
  }
  Patch around(int64_t row, int64_t column) const {
    Patch patch;
    for (int y = -reach; y <= reach; ++y)
      for (int x = -reach; x <= reach; ++x)
        patch.push_back(at(row + y, column + x));
    return patch;
  }
};

double correlation(const Patch& a, const Patch& b) {
  double mean_a = 0, mean_b = 0, covariance = 0, variance_a = 0, variance_b = 0;
  for (int k = 0; k < cells; ++k) {
    mean_a += a[k] / cells;
    mean_b += b[k] / cells;
  }
  for (int k = 0; k < cells; ++k) {
    covariance += (a[k] - mean_a) * (b[k] - mean_b);
    variance_a += (a[k] - mean_a) * (a[k] - mean_a);
    variance_b += (b[k] - mean_b) * (b[k] - mean_b);
  }
  return covariance / std::sqrt(variance_a * variance_b);
}

} // namespace

REFERENCE(heartwall) {
  struct Film {
    int32_t rows, columns;
    float memory;
  };
  const Film& film = data.as<Film>("film_layout")[0];
  auto pixels = data.f32("film"), templates = data.f32("templates");
  auto rows = data.s32("point_rows"), columns = data.s32("point_columns");
  const int64_t frame_size = int64_t{film.rows} * film.columns;
  auto frame = [&](int64_t t) { return Frame{pixels.subspan(t * frame_size, frame_size), film.rows, film.columns}; };

  for (size_t point = 0; point < rows.size(); ++point) {
    Patch pattern = frame(0).around(rows[point], columns[point]);
    for (int64_t t = 1; t < data.value("frames"); ++t) {
      double best = -2;
      int best_y = 0, best_x = 0;
      for (int y = -search; y <= search; ++y)
        for (int x = -search; x <= search; ++x) {
          const double found = correlation(pattern, frame(t).around(rows[point] + y, columns[point] + x));
          if (found > best) best = found, best_y = y, best_x = x;
        }
      rows[point] += best_y;
      columns[point] += best_x;
      const Patch seen = frame(t).around(rows[point], columns[point]);
      for (int k = 0; k < cells; ++k)
        pattern[k] = film.memory * pattern[k] + (1 - film.memory) * seen[k];
    }
    std::ranges::copy(pattern, templates.begin() + point * cells);
  }
  // Two products of numbers below 1 and a sum, rounded to float once a frame.
  data.tolerate("templates", {.absolute = 3e-7});
}
