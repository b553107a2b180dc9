// The recursive filter along lines of an image in double precision: down the columns, then along the rows. A self-test
// checks that it is a Gaussian filter: the response to a single bright pixel is close to a Gaussian.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

namespace {

using Line = std::vector<double>;

struct Filter {
  double a[4], b[2], forward_start, backward_start;
};

Line filtered(const Line& line, const Filter& filter) {
  const int length = static_cast<int>(line.size());
  // The line is extended by its first and last pixels.
  const auto in = [&](int i) { return line[std::clamp(i, 0, length - 1)]; };
  Line forward(length);
  Line backward(length);
  const auto out = [&](const Line& of, int i, double beyond) { return i >= 0 && i < length ? of[i] : beyond; };
  for (int i = 0; i < length; ++i) {
    const double beyond = filter.forward_start * in(0);
    forward[i] = filter.a[0] * in(i) + filter.a[1] * in(i - 1) - filter.b[0] * out(forward, i - 1, beyond) -
                 filter.b[1] * out(forward, i - 2, beyond);
  }
  for (int i = length - 1; i >= 0; --i) {
    const double beyond = filter.backward_start * in(length - 1);
    backward[i] = filter.a[2] * in(i + 1) + filter.a[3] * in(i + 2) - filter.b[0] * out(backward, i + 1, beyond) -
                  filter.b[1] * out(backward, i + 2, beyond);
  }
  Line sum(length);
  std::transform(forward.begin(), forward.end(), backward.begin(), sum.begin(), std::plus<>());
  return sum;
}

void check_against_gaussian(const Filter& filter, double sigma) {
  constexpr int length = 201;
  Line impulse(length);
  impulse[length / 2] = 1;
  const Line answer = filtered(impulse, filter);
  for (int i = 0; i < length; ++i) {
    const double x = (i - length / 2) / sigma;
    const double gaussian = std::exp(-x * x / 2) / (sigma * std::sqrt(2 * std::numbers::pi));
    if (std::abs(answer[i] - gaussian) > 0.1 / sigma) {
      throw std::logic_error("the reference filter is no Gaussian");
    }
  }
}

// Filters the lines of one channel that start at multiples of `stride` and whose pixels are `step` apart.
void filter_lines(std::span<const std::uint8_t> from, std::span<std::uint8_t> to, int lines, int stride, int length,
                  int step, const Filter& filter) {
  for (int line = 0; line < lines; ++line) {
    for (int channel = 0; channel < 4; ++channel) {
      const auto at = [&](int i) { return 4 * (line * stride + i * step) + channel; };
      Line values(length);
      for (int i = 0; i < length; ++i)
        values[i] = from[at(i)];
      const Line done = filtered(values, filter);
      for (int i = 0; i < length; ++i) {
        to[at(i)] = static_cast<std::uint8_t>(std::clamp(done[i] + 0.5, 0.0, 255.0));
      }
    }
  }
}

} // namespace

REFERENCE(recursive_gaussian) {
  const auto number = [&](const char* name) { return data.number(name); };
  const Filter filter = {{number("a0"), number("a1"), number("a2"), number("a3")},
                         {number("b1"), number("b2")},
                         number("forward_start"),
                         number("backward_start")};
  check_against_gaussian(filter, number("sigma"));

  const int width = data.value("width");
  const int height = data.value("height");
  filter_lines(data.u8("image"), data.u8("blurred_down"), width, 1, height, width, filter);
  filter_lines(data.u8("blurred_down"), data.u8("blurred"), height, width, width, 1, filter);

  // A sum at the boundary of two bytes may be rounded to either.
  data.tolerate("blurred_down", {.absolute = 1});
  data.tolerate("blurred", {.absolute = 1});
}
