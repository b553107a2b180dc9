// The equations of a heart muscle cell in double, as reactions and currents that change several states each, and
// Fehlberg's tableau as fractions.
#include "tests/samples/reference.h"

#include <algorithm>
#include <array>

namespace {

constexpr size_t equations = 91;
using States = std::array<double, equations>;

constexpr double faraday = 96485, per_volt = faraday / (8314.0 * 310);
constexpr double cell_volume = 3.1416 * 10.25 * 10.25 * 100 * 1e-15, plasma = 0.65 * cell_volume;
constexpr double reticulum = 0.035 * cell_volume, space[2] = {0.000539 * cell_volume, 0.02 * cell_volume};
constexpr double share[2] = {0.11, 0.89}, channel_share[2] = {0.9, 0.1}, charge = 1.381e-10 / faraday;
constexpr double potassium_out = 5.4, sodium_out = 140, calcium_out = 1.8;

double rises(double v, double half, double width) {
  return 1 / (1 + std::exp((half - v) / width));
}
double falls(double v, double half, double width) {
  return 1 / (1 + std::exp((v - half) / width));
}
// A rate that grows linearly above `half`.
double ramp(double v, double slope, double half, double steepness) {
  return slope * (v - half) / (1 - std::exp(-steepness * (v - half)));
}
// The Goldman-Hodgkin-Katz equation for the flux of an ion through a membrane.
double flux(double z, double v, double inside, double outside) {
  const double u = z * v * per_volt;
  return z * u * faraday * (inside * std::exp(u) - outside) / (std::exp(u) - 1);
}
double potential(double z, double inside, double outside) {
  return std::log(outside / inside) / (z * per_volt);
}

class Cell {
public:
  Cell(double time, const States& y, std::span<const float> parameters)
      : y_(y), v_(y[38]), parameters_(parameters.begin(), parameters.end()) {
    gates();
    current_ = std::fmod(time, parameters_[0]) <= 5 ? -9.5 : 0;
    potassium();
    for (size_t side : {0, 1})
      membrane(side);
    rate_[38] = -current_;
    release();
    buffers();
    for (size_t place : {0, 1, 2})
      gained_[place] = calmodulin(place);
  }
  // Each group of equations alone, and what calmodulin adds to the cell's calcium.
  const States& separate_rates() const { return rate_; }
  const std::array<double, 3>& gained() const { return gained_; }
  // All of them together.
  const States& rates() {
    for (size_t place : {0, 1, 2})
      rate_[35 + place] += 1e-3 * gained_[place];
    calmodulin_moves();
    for (double& rate : rate_)
      if (!std::isfinite(rate)) rate = 1e-4;
    return rate_;
  }

private:
  void relax(size_t gate, double target, double rate) { rate_[gate] = (target - y_[gate]) * rate; }

  void gates() {
    const bool high = v_ >= -40;
    const double open_m = ramp(v_, 0.32, -47.13, 0.1), close_m = 0.08 * std::exp(-v_ / 11);
    relax(0, open_m / (open_m + close_m), open_m + close_m);
    const double open_h = high ? 0 : 0.135 * std::exp(-(80 + v_) / 6.8);
    const double close_h =
        high ? rises(v_, -10.66, 11.1) / 0.13 : 3.56 * std::exp(0.079 * v_) + 3.1e5 * std::exp(0.35 * v_);
    relax(1, open_h / (open_h + close_h), open_h + close_h);
    const double open_j = high ? 0
                               : -(127140 * std::exp(0.2444 * v_) + 3.474e-5 * std::exp(-0.04391 * v_)) * (v_ + 37.78) *
                                     falls(v_, -79.23, 1 / 0.311);
    const double close_j = high ? 0.3 * std::exp(-2.535e-7 * v_) * rises(v_, -32, 10)
                                : 0.1212 * std::exp(-0.01052 * v_) * rises(v_, -40.14, 1 / 0.1378);
    relax(2, open_j / (open_j + close_j), open_j + close_j);

    const double d = rises(v_, -14.5, 6);
    relax(3, d, 0.035 * (v_ + 14.5) / (d * (1 - std::exp(-(v_ + 14.5) / 6))));
    relax(4, falls(v_, -35.06, 3.6) + 0.6 * rises(v_, 50, 20),
          0.02 + 0.0197 * std::exp(-std::pow(0.0337 * (v_ + 14.5), 2)));
    for (size_t side : {0, 1})
      rate_[5 + side] = 1.7 * y_[35 + side] * (1 - y_[5 + side]) - 0.0119 * y_[5 + side];

    const double x = rises(v_, -3, 15), r = falls(v_, -33.5, 10), late = falls(v_, -60, 10);
    relax(7, x, 1 / (0.5 + 9 * falls(v_, -3, 15)));
    relax(8, r, 1 / (30 + 3000 * late));
    relax(9, x, 1 / (1.5 + 3.5 * std::exp(-v_ * v_ / 900)));
    relax(10, r, 1 / (20 + 20 * r));
    relax(39, r, 1 / (220 + 2800 * late));
    relax(11, rises(v_, -50, 7.5), ramp(v_, 0.00138, -7, 0.123) - ramp(v_, 6.1e-4, -10, -0.145));
    relax(12, rises(v_, 1.5, 16.7), ramp(v_, 7.19e-5, -30, 0.148) - ramp(v_, 1.31e-4, -30, -0.0687));
  }

  void potassium() {
    const double against = v_ - potential(1, y_[34], potassium_out);
    const double leaky = v_ - potential(1, y_[34] + 0.01833 * y_[33], potassium_out + 0.01833 * sodium_out);
    const double opens = 1.02 * falls(against, 59.215, 1 / 0.2385);
    const double closes = (0.49124 * std::exp(0.08032 * (against + 5.476)) + std::exp(0.06175 * (against - 594.31))) *
                          rises(against, -4.753, 1 / 0.5143);
    current_ +=
        against * (0.03 * y_[11] * falls(v_, -33, 22.4) + 0.001 * rises(v_, 7.488 * 5.98, 5.98) +
                   0.06 * y_[7] * (y_[8] + y_[39] / 2) + 0.02 * y_[9] * y_[10] + 0.9 * opens / (opens + closes));
    for (size_t side : {0, 1})
      current_ += leaky * share[side] * std::pow(y_[11 + side], 2) * 0.07 *
                  (0.057 + 0.19 * rises(std::log10(y_[35 + side]), -4.2, 0.6));
    current_ += (v_ - potential(-1, 15, 150)) * 0.009;
  }

  // What flows on one side, junction or elsewhere, and its change of concentrations.
  void membrane(size_t side) {
    const double na = y_[31 + side], ca = y_[35 + side];
    const double sodium =
        share[side] * (v_ - potential(1, na, sodium_out)) * (16 * std::pow(y_[0], 3) * y_[1] * y_[2] + 2.97e-4);
    const double sigma = std::expm1(sodium_out / 67.3) / 7;
    const double pump = share[side] * 1.90719 /
                        (1 + 0.1245 * std::exp(-0.1 * v_ * per_volt) + 0.0365 * sigma * std::exp(-v_ * per_volt)) *
                        potassium_out / (potassium_out + 1.5) / (1 + std::pow(11 / na, 4));
    const double open = 0.45 * channel_share[side] * y_[3] * y_[4] * (1 - y_[5 + side]);
    const double channel = open * 5.4e-4 * 0.341 * flux(2, v_, ca, calcium_out);
    const double sodium_channel = open * 1.5e-8 * 0.75 * flux(1, v_, na, sodium_out);
    const double potassium_channel = open * 2.7e-7 * 0.75 * flux(1, v_, y_[34], potassium_out);
    const double in = std::exp(0.35 * v_ * per_volt) * std::pow(na, 3) * calcium_out;
    const double out = std::exp(-0.65 * v_ * per_volt) * std::pow(sodium_out, 3) * ca;
    const double occupied = std::pow(sodium_out, 3) * (ca + 3.59e-3 * (1 + std::pow(na / 12.29, 3))) +
                            std::pow(87.5, 3) * ca + std::pow(12.29, 3) * calcium_out * (1 + ca / 3.59e-3) +
                            std::pow(na, 3) * (1.3 + calcium_out);
    const double exchange = share[side] * 9 * (in - out) / occupied / (1 + std::pow(2.56e-4 / ca, 3)) /
                            (1 + 0.27 * std::exp(-0.65 * v_ * per_volt));
    const double calcium_pump = share[side] * 0.0673 / (1 + std::pow(5e-4 / ca, 1.6));
    const double leak = share[side] * 2.513e-4 * (v_ - potential(2, ca, calcium_out));
    const double chloride = share[side] * 0.109625 / (1 + 0.1 / ca) * (v_ - potential(-1, 15, 150));

    const double of_sodium = sodium + sodium_channel + 3 * exchange + 3 * pump;
    const double of_calcium = channel + calcium_pump + leak - 2 * exchange;
    current_ += of_sodium + of_calcium + chloride + potassium_channel - 2 * pump;
    rate_[31 + side] -= of_sodium * charge / space[side];
    rate_[35 + side] -= of_calcium * charge / (2 * space[side]);
    const std::array totals = {-channel, -calcium_pump, 2 * exchange, -leak};
    for (size_t k = 0; k < totals.size(); ++k)
      rate_[42 + k] += totals[k] * charge / (2 * plasma) * 1e3;
  }

  // Diffusion: amounts leave one volume and arrive in another.
  void moves(size_t from, double volume_from, size_t to, double volume_to, double flow) {
    rate_[from] -= flow / volume_from;
    rate_[to] += flow / volume_to;
  }

  void release() {
    const double load = 15 - 14 / (1 + std::pow(0.45 / y_[30], 2.5));
    const double opening = 10 / load * y_[35] * y_[35], closing = 0.5 * load * y_[35];
    const double blocked = 1 - y_[13] - y_[14] - y_[15];
    const double steps[4] = {opening * y_[13] - 0.06 * y_[14], closing * y_[14] - 0.005 * y_[15],
                             0.06 * y_[15] - opening * blocked, 0.005 * blocked - closing * y_[13]};
    rate_[13] = steps[3] - steps[0];
    rate_[14] = steps[0] - steps[1];
    rate_[15] = steps[1] - steps[2];

    moves(30, reticulum, 35, space[0], 25 * y_[14] * (y_[30] - y_[35]) * reticulum);
    moves(30, reticulum, 35, space[0], 5.348e-6 * (y_[30] - y_[35]) * plasma);
    const double in = std::pow(y_[37] / 2.46e-4, 1.787), out = std::pow(y_[30] / 1.7, 1.787);
    moves(37, plasma, 30, reticulum, 2.86e-4 * (in - out) / (1 + in + out) * plasma);
    moves(35, space[0], 36, space[1], (y_[35] - y_[36]) * 8.2413e-13);
    moves(36, space[1], 37, plasma, (y_[36] - y_[37]) * 3.7243e-12);
    moves(31, space[0], 32, space[1], (y_[31] - y_[32]) * 1.8313e-14);
    moves(32, space[1], 33, plasma, (y_[32] - y_[33]) * 1.6386e-12);
  }

  // A buffer takes what binds to it from the ion's concentration, if that is a state.
  void binds(size_t buffer, double ion, double on, double free, double off, size_t from = 0) {
    rate_[buffer] = on * ion * free - off * y_[buffer];
    if (from != 0) rate_[from] -= rate_[buffer];
  }

  void buffers() {
    const double cell = y_[37], troponin = 0.14 - y_[19] - y_[20], myosin = 0.14 - y_[22] - y_[23];
    binds(18, cell, 32.7, 0.07 - y_[18], 0.0196, 37);
    binds(19, cell, 2.37, troponin, 3.2e-5, 37);
    binds(20, 1, 0.003, troponin, 0.00333, 37); // magnesium, but the model takes it from calcium
    binds(22, cell, 13.8, myosin, 4.6e-4, 37);
    binds(23, 1, 0.0157, myosin, 5.7e-5, 37);
    binds(24, cell, 100, 0.0171 - y_[24], 0.06, 37);
    binds(29, y_[30], 100, 2.7 - y_[29], 65, 30);
    for (size_t side : {0, 1}) {
      const double volume = plasma / space[side];
      binds(16 + side, y_[31 + side], 1e-4, (side == 0 ? 7.561 : 1.65) - y_[16 + side], 1e-3, 31 + side);
      binds(25 + side, y_[35 + side], 100, (side == 0 ? 4.6e-4 : 0.0374) * volume - y_[25 + side], 1.3, 35 + side);
      binds(27 + side, y_[35 + side], 100, (side == 0 ? 1.65e-4 : 0.01335) * volume - y_[27 + side], 0.03, 35 + side);
    }
  }

  // Reactions of calmodulin in one place: what each takes from states and adds to others.
  double calmodulin(size_t place) {
    const double* y = &y_[46 + 15 * place];
    const double* totals = &parameters_[1 + 5 * place];
    const double k = parameters_[16], mg = parameters_[17], calcium = 1e3 * y_[35 + place];
    const double above = std::max(mg - 1, 0.0), below = std::min(mg, 1.0);
    const double first =
        0.0025 * (1 + k / 0.94 - below / 0.012 + above / 0.06) * (1 + k / 8.1 + below / 0.022 + above / 0.068);
    const double second =
        0.128 * (1 + k / 0.64 + below / 0.0014 + above / 0.005) * (1 + k / 13 - below / 0.153 + above / 0.15);
    const double on_2 = 10 / first * calcium * calcium, on_4 = 500 / second * calcium * calcium;
    const double buffer = totals[1] - y[3] - y[4] - y[5], kinase = totals[2];
    const double idle = 1 - y[6] - y[7] - y[8] - y[9] - y[10], active = y[7] + y[8] + y[9] + y[10];
    const double wake = 2.2 / 0.0335;
    auto phosphatase = [&](double form) { return 1.72 * totals[4] * form / (11.5 + kinase * form); };

    struct Reaction {
      double speed;
      std::array<int, 3> takes, adds; // states, -1: none
      double calcium = 0;             // ions
    };
    const double fill = on_4 * y[6] - 3.35 * y[7], empty = 0.00335 * y[8] - on_4 * y[9];
    const std::array reactions = {
        Reaction{on_2 * y[0] - 10 * y[1], {0, -1, -1}, {1, -1, -1}, 2},
        Reaction{on_4 * y[1] - 500 * y[2], {1, -1, -1}, {2, -1, -1}, 2},
        Reaction{on_2 * y[3] - 0.1 * y[4], {3, -1, -1}, {4, -1, -1}, 2},
        Reaction{on_4 * y[4] - 500 * y[5], {4, -1, -1}, {5, -1, -1}, 2},
        Reaction{0.007 * y[0] * buffer - 0.0014 * y[3], {0, -1, -1}, {3, -1, -1}},
        Reaction{0.007 * y[1] * buffer - 1.4e-5 * y[4], {1, -1, -1}, {4, -1, -1}},
        Reaction{0.007 * y[2] * buffer - 1.4e-5 * y[5], {2, -1, -1}, {5, -1, -1}},
        Reaction{
            2 * calcium * calcium * (totals[3] - y[11] - y[12] - y[13] - y[14]) - y[11], {-1, -1, -1}, {11, -1, -1}, 2},
        Reaction{on_2 * y[12] - 10.0 / 165 * y[13], {12, -1, -1}, {13, -1, -1}, 2},
        Reaction{on_4 * y[13] - 10.0 / 2508 * y[14], {13, -1, -1}, {14, -1, -1}, 2},
        Reaction{46 * y[0] * y[11] - 0.0013 * 2508 * 165 * y[12], {0, 11, -1}, {12, -1, -1}},
        Reaction{46 * y[1] * y[11] - 0.0013 * 2508 * y[13], {1, 11, -1}, {13, -1, -1}},
        Reaction{46 * y[2] * y[11] - 0.0013 * y[14], {2, 11, -1}, {14, -1, -1}},
        Reaction{fill, {6, -1, -1}, {7, -1, -1}, 2 * kinase},
        Reaction{empty, {8, -1, -1}, {9, -1, -1}, -2 * kinase},
        Reaction{active * (0.055 + 0.0074 * active + 0.015 * active * active) * y[7] - phosphatase(y[8]),
                 {7, -1, -1},
                 {8, -1, -1}},
        Reaction{phosphatase(y[9]), {9, -1, -1}, {6, -1, -1}},
        Reaction{phosphatase(y[10]), {10, -1, -1}, {-1, -1, -1}},
    };
    States& rate = rate_;
    auto of = [&](int state) -> double& { return rate[46 + 15 * place + static_cast<size_t>(state)]; };
    double taken = 0;
    for (const Reaction& reaction : reactions) {
      for (int state : reaction.takes)
        if (state >= 0) of(state) -= 1e-3 * reaction.speed;
      for (int state : reaction.adds)
        if (state >= 0) of(state) += 1e-3 * reaction.speed;
      taken += 1e-3 * reaction.calcium * reaction.speed;
    }
    // Calmodulin on the kinase: states of the kinase are shares of its total.
    const double joins_2 = wake * y[1] * idle - 5 * wake * y[6], joins_4 = wake * y[2] * idle - 2.2 * y[7];
    const double leaves_4 = 0.0022 * y[8] - wake * y[2] * y[10], leaves_2 = 5 * wake * y[9] - wake * y[1] * y[10];
    of(1) += 1e-3 * kinase * (leaves_2 - joins_2);
    of(2) += 1e-3 * kinase * (leaves_4 - joins_4);
    of(6) += 1e-3 * joins_2;
    of(7) += 1e-3 * joins_4;
    of(8) -= 1e-3 * leaves_4;
    of(9) -= 1e-3 * leaves_2;
    of(10) += 1e-3 * (leaves_4 + leaves_2);
    return -taken;
  }

  void calmodulin_moves() {
    double held = parameters_[3] * (y_[52] + y_[53] + y_[54] + y_[55]);
    for (size_t state : {46, 47, 48, 49, 50, 51, 58, 59, 60})
      held += y_[state];
    for (size_t ions : {0, 1, 2}) {
      const double off = ions == 0 ? 0.0014 : 1.4e-5;
      const double flow = 1e-3 * (off * y_[46 + ions] - 0.007 * (parameters_[2] - held) * y_[61 + ions]) * 1.779e-14;
      moves(46 + ions, 1.779e-14, 61 + ions, 6.6013e-13, flow);
      moves(61 + ions, 6.6013e-13, 76 + ions, 2.1454e-11, 8.587e-15 * (y_[61 + ions] - y_[76 + ions]));
    }
  }

  const States& y_;
  double v_, current_ = 0;
  std::vector<double> parameters_;
  States rate_{};
  std::array<double, 3> gained_{};
};

// Fehlberg 7(8): numerators of each stage's coefficients, their denominator, the stage's time.
struct Stage {
  std::array<double, 12> of;
  double denominator, time;
};
constexpr std::array tableau = {
    Stage{{}, 1, 0},
    Stage{{2}, 27, 2.0 / 27},
    Stage{{1, 3}, 36, 1.0 / 9},
    Stage{{1, 0, 3}, 24, 1.0 / 6},
    Stage{{20, 0, -75, 75}, 48, 5.0 / 12},
    Stage{{1, 0, 0, 5, 4}, 20, 1.0 / 2},
    Stage{{-25, 0, 0, 125, -260, 250}, 108, 5.0 / 6},
    Stage{{93, 0, 0, 0, 244, -200, 13}, 900, 1.0 / 6},
    Stage{{180, 0, 0, -795, 1408, -1070, 67, 270}, 90, 2.0 / 3},
    Stage{{-455, 0, 0, 115, -3904, 3110, -171, 1530, -45}, 540, 1.0 / 3},
    Stage{{2383, 0, 0, -8525, 17984, -15050, 2133, 2250, 1125, 1800}, 4100, 1},
    Stage{{3, 0, 0, 0, 0, -30, -3, -15, 15, 30}, 205, 0},
    Stage{{-1777, 0, 0, -8525, 17984, -14450, 2193, 2550, 825, 1200, 0, 4100}, 4100, 1},
};

// One step; returns the estimated errors.
States fehlberg(double time, double step, const States& y, std::span<const float> parameters, States& next) {
  std::array<States, tableau.size()> k;
  for (size_t stage = 0; stage < tableau.size(); ++stage) {
    States state = y;
    for (size_t earlier = 0; earlier < stage; ++earlier)
      for (size_t i = 0; i < equations; ++i)
        state[i] += step * tableau[stage].of[earlier] / tableau[stage].denominator * k[earlier][i];
    k[stage] = Cell(time + tableau[stage].time * step, state, parameters).rates();
  }
  States errors;
  for (size_t i = 0; i < equations; ++i) {
    next[i] =
        y[i] +
        step / 840 * (41 * (k[0][i] + k[10][i]) + 272 * k[5][i] + 216 * (k[6][i] + k[7][i]) + 27 * (k[8][i] + k[9][i]));
    errors[i] = 41.0 / 840 * std::abs(k[0][i] + k[10][i] - k[11][i] - k[12][i]);
  }
  return errors;
}

} // namespace

REFERENCE(myocyte) {
  auto evaluated = data.f32("evaluated"), slopes = data.f32("slopes"), gained = data.f32("gained");
  for (int64_t t = 0; t < data.value("evaluations"); ++t) {
    States state;
    std::copy_n(evaluated.begin() + 91 * t, equations, state.begin());
    const Cell cell(static_cast<double>(t / 13 + 1), state, data.f32("parameters").first(18));
    std::ranges::copy(cell.separate_rates(), slopes.begin() + 91 * t);
    std::ranges::copy(cell.gained(), gained.begin() + 3 * t);
  }
  // Sums of terms of up to some hundreds, which cancel.
  data.tolerate("slopes", {.relative = 1e-4, .absolute = 5e-5});
  data.tolerate("gained", {.relative = 1e-4, .absolute = 1e-6});

  const int64_t steps = data.value("steps");
  auto times = data.f32("times"), values = data.f32("values"), parameters = data.f32("parameters");
  const double tolerance = 10.0 / static_cast<double>(steps);
  for (int64_t cell = 0; cell < data.value("cells"); ++cell) {
    States y, next;
    std::copy_n(values.begin() + cell * (steps + 1) * 91, equations, y.begin());
    for (int64_t k = 1; k <= steps; ++k, y = next) {
      double step = 1;
      for (int attempt = 0; attempt < 12; ++attempt) {
        const States errors = fehlberg(static_cast<double>(k), step, y, parameters.subspan(cell * 18, 18), next);
        double worst = 0; // largest ratio of an equation's error to its tolerance
        for (size_t i = 0; i < equations; ++i)
          worst = std::max(worst, errors[i] / (tolerance * (y[i] == 0 ? tolerance : std::abs(y[i]))));
        if (worst <= 1) break;
        step = std::min(0.9, step * std::clamp(0.8 * std::pow(worst, -1.0 / 7), 0.125, 4.0));
      }
      times[cell * (steps + 1) + k] = static_cast<float>(static_cast<double>(k) + step);
      std::ranges::copy(next, values.begin() + (cell * (steps + 1) + k) * 91);
    }
  }
  // The error estimate is a difference of nearly equal slopes. Where it is small, its rounding moves the step by up to
  // a percent, and states that change fast with it; no cell of the small size is such a one.
  const double rounding = data.value("cells") <= 2 ? 1e-6 : 1e-3;
  data.tolerate("times", {.absolute = 2e-5});
  data.tolerate("values", {.relative = rounding, .absolute = rounding / 2});
}
