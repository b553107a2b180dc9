#include "evaluate/calibrate/energy_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace ptxrewrite::evaluate {
namespace {

using ir::EnergyEvent;

constexpr double pico = 1e-12;

// Events with a coefficient of their own.
constexpr std::array unknowns = {
    EnergyEvent::sched,     EnergyEvent::rf_read, EnergyEvent::rf_write,    EnergyEvent::int_alu,
    EnergyEvent::int_mul,   EnergyEvent::fp_mul,  EnergyEvent::dp_mul,      EnergyEvent::sqrt,
    EnergyEvent::const_hit, EnergyEvent::shared,  EnergyEvent::l1_read_hit, EnergyEvent::noc_flit,
    EnergyEvent::dram_read,
};
constexpr size_t columns = unknowns.size() + 1; // plus static power, which comes last

struct Twin {
  EnergyEvent event, as;
};
constexpr Twin twins[] = {
    {EnergyEvent::fp32, EnergyEvent::fp_mul}, {EnergyEvent::fp64, EnergyEvent::dp_mul},
    {EnergyEvent::lg2, EnergyEvent::sqrt},    {EnergyEvent::sin, EnergyEvent::sqrt},
    {EnergyEvent::ex2, EnergyEvent::sqrt},    {EnergyEvent::dram_write, EnergyEvent::dram_read},
};

double count_of(const EnergyRow& row, EnergyEvent event) {
  double count = row.events[static_cast<size_t>(event)];
  for (const Twin& twin : twins)
    if (twin.as == event) count += row.events[static_cast<size_t>(twin.event)];
  return count;
}

using Coefficients = std::array<double, columns>; // pJ, W

// The row divided by its energy, so that all rows have equal weight.
std::array<double, columns> shares(const EnergyRow& row) {
  std::array<double, columns> of{};
  for (size_t i = 0; i < unknowns.size(); ++i)
    of[i] = count_of(row, unknowns[i]) * pico / row.joules;
  of.back() = row.seconds / row.joules;
  return of;
}

// Coordinate descent: optimizes one coefficient after the other, none below 0, until no coefficient changes.
Coefficients solve(const std::vector<std::array<double, columns>>& rows) {
  Coefficients found{};
  std::vector<double> missing(rows.size(), 1); // remaining fraction of each row's energy
  constexpr int most_rounds = 20000;
  for (int round = 0; round < most_rounds; ++round) {
    double moved = 0;
    for (size_t column = 0; column < columns; ++column) {
      double along = 0, length = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        along += rows[i][column] * missing[i];
        length += rows[i][column] * rows[i][column];
      }
      if (length <= 0) continue;
      const double next = std::max(found[column] + along / length, 0.0), step = next - found[column];
      for (size_t i = 0; i < rows.size(); ++i)
        missing[i] -= step * rows[i][column];
      found[column] = next;
      moved = std::max(moved, std::abs(step) * std::sqrt(length));
    }
    if (moved < 1e-9) break;
  }
  return found;
}

double predicted(const std::array<double, columns>& row, const Coefficients& coefficients) {
  double sum = 0;
  for (size_t i = 0; i < columns; ++i)
    sum += row[i] * coefficients[i];
  return sum;
}

} // namespace

EnergyFit fit_energy(std::span<const EnergyRow> rows) {
  std::vector<std::array<double, columns>> all;
  for (const EnergyRow& row : rows)
    if (row.joules > 0) all.push_back(shares(row));
  EnergyFit fit;
  if (all.empty()) return fit;
  const Coefficients found = solve(all);
  for (size_t i = 0; i < unknowns.size(); ++i)
    fit.pj[static_cast<size_t>(unknowns[i])] = found[i];
  for (const Twin& twin : twins)
    fit.pj[static_cast<size_t>(twin.event)] = fit.pj[static_cast<size_t>(twin.as)];
  fit.static_watt = found.back();
  for (size_t i = 0; i < all.size(); ++i) {
    fit.error += std::abs(predicted(all[i], found) - 1) / static_cast<double>(all.size());
    std::vector<std::array<double, columns>> others = all;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    fit.error_left_out += std::abs(predicted(all[i], solve(others)) - 1) / static_cast<double>(all.size());
  }
  return fit;
}

} // namespace ptxrewrite::evaluate
