// The binomial tree without a tree: the price is the expectation of the payoff over the binomial distribution of the
// number of steps up, the probabilities from the logarithm of the gamma function, in double precision.
#include "tests/samples/reference.h"

#include <algorithm>
#include <cmath>

REFERENCE(binomial_options) {
  const int steps = data.value("steps");
  const auto options = data.f32("options");
  const auto values = data.f32("values");

  for (std::size_t option = 0; option < values.size(); ++option) {
    const double spot = options[5 * option];
    const double strike = options[5 * option + 1];
    const double move = options[5 * option + 2];
    const double up = options[5 * option + 3];
    const double down = options[5 * option + 4];
    double price = 0;
    for (int ups = 0; ups <= steps; ++ups) {
      const double ways = std::lgamma(steps + 1) - std::lgamma(ups + 1) - std::lgamma(steps - ups + 1);
      const double weight = std::exp(ways + ups * std::log(up) + (steps - ups) * std::log(down));
      price += weight * std::max(0.0, spot * std::exp(move * (2 * ups - steps)) - strike);
    }
    values[option] = static_cast<float>(price);
  }

  // The leaves are approximate exponentials, and rounding adds up over the levels.
  data.tolerate("values", {.absolute = 2e-4});
}
