// The Black-Scholes formula in double precision, the normal distribution from the error function.
#include "tests/samples/reference.h"

#include <cmath>

namespace {

double normal_distribution(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

} // namespace

REFERENCE(black_scholes) {
  const int options = data.value("options");
  const double rate = data.number("rate");
  const double volatility = data.number("volatility");
  const auto spots = data.f32("spots");
  const auto strikes = data.f32("strikes");
  const auto years = data.f32("years");
  const auto calls = data.f32("calls");
  const auto puts = data.f32("puts");

  for (int i = 0; i < options; ++i) {
    const double spread = volatility * std::sqrt(years[i]);
    const double d1 =
        (std::log(spots[i] / double{strikes[i]}) + (rate + volatility * volatility / 2) * years[i]) / spread;
    const double d2 = d1 - spread;
    const double discounted = strikes[i] * std::exp(-rate * years[i]);
    calls[i] = static_cast<float>(spots[i] * normal_distribution(d1) - discounted * normal_distribution(d2));
    puts[i] = static_cast<float>(discounted * normal_distribution(-d2) - spots[i] * normal_distribution(-d1));
  }

  // Approximate logarithm, exponential, division and root, and a polynomial that is good to 7.5e-8 of the price.
  data.tolerate("calls", {.absolute = 1e-4});
  data.tolerate("puts", {.absolute = 1e-4});
}
