// Swaptions under the LIBOR market model in double precision. The sensitivity is computed forward, by propagating the
// derivative with respect to the last initial rate through every operation (dual numbers): a check of the kernel's
// adjoint that is independent of it.
#include "tests/samples/reference.h"

#include <cmath>
#include <span>
#include <vector>

namespace {

// A number and its derivative with respect to the last initial rate.
struct Dual {
  double value = 0;
  double derivative = 0;
};

Dual operator+(Dual a, Dual b) {
  return {a.value + b.value, a.derivative + b.derivative};
}
Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
}
Dual operator/(Dual a, Dual b) {
  return {a.value / b.value, (a.derivative * b.value - a.value * b.derivative) / (b.value * b.value)};
}
Dual number(double value) {
  return {value, 0};
}
Dual exponential(Dual a) {
  return {std::exp(a.value), std::exp(a.value) * a.derivative};
}

struct Market {
  int rates, time_steps, options;
  double accrual;
  std::span<const int> maturities;
  std::span<const float> swap_rates, volatility;
};

Dual price_of_path(const Market& market, double first_rate, const std::vector<double>& deviates) {
  const auto [rates, time_steps, options, accrual, maturities, swap_rates, volatility] = market;
  const auto growth = [&](Dual rate) { return number(1) + number(market.accrual) * rate; };
  std::vector<Dual> rate(rates, number(first_rate));
  rate.back().derivative = 1;
  for (int step = 0; step < time_steps; ++step) {
    Dual drift;
    for (int i = step + 1; i < rates; ++i) {
      const double lambda = volatility[i - step - 1];
      drift = drift + number(accrual * lambda) * rate[i] / growth(rate[i]);
      const double shock = lambda * (std::sqrt(accrual) * deviates[step] - 0.5 * accrual * lambda);
      rate[i] = rate[i] * exponential(number(accrual * lambda) * drift + number(shock));
    }
  }

  Dual payoff;
  for (int option = 0; option < options; ++option) {
    Dual bond = number(1);
    Dual annuity;
    for (int n = time_steps; n < time_steps + maturities[option]; ++n) {
      bond = bond / growth(rate[n]);
      annuity = annuity + number(accrual) * bond;
    }
    const Dual swap = bond + number(swap_rates[option]) * annuity + number(-1);
    if (swap.value < 0) {
      payoff = payoff + number(-100) * swap;
    }
  }
  for (int n = 0; n < time_steps; ++n) {
    payoff = payoff / growth(rate[n]);
  }
  return payoff;
}

} // namespace

REFERENCE(libor) {
  const Market market = {data.s32("rates")[0],   data.s32("time_steps")[0], data.s32("options")[0],
                         data.f32("accrual")[0], data.s32("maturities"),    data.f32("swap_rates"),
                         data.f32("volatility")};
  const std::size_t paths = data.value("paths");
  const auto deviates = data.f32("deviates");
  const auto values = data.f32("values");
  const auto adjoint_values = data.f32("adjoint_values");
  const auto last_rate_bars = data.f32("last_rate_bars");

  for (std::size_t path = 0; path < paths; ++path) {
    std::vector<double> own(market.time_steps);
    for (int step = 0; step < market.time_steps; ++step) {
      own[step] = deviates[step * paths + path];
    }
    const Dual price = price_of_path(market, data.number("first_rate"), own);
    values[path] = static_cast<float>(price.value);
    adjoint_values[path] = static_cast<float>(price.value);
    last_rate_bars[path] = static_cast<float>(price.derivative);
  }

  // Approximate exponentials, multiplied up over the time steps; prices come near 300 as differences of bonds near 1.
  for (const char* name : {"values", "adjoint_values", "last_rate_bars"}) {
    data.tolerate(name, {.relative = 2e-4, .absolute = 1e-3});
  }
}
