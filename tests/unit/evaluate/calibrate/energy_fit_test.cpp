// Coefficients are recovered from synthetic energies, and none is below 0.
#include "evaluate/calibrate/energy_fit.h"

#include <doctest/doctest.h>

#include <random>

namespace ptxrewrite::tests::energy_fit_test {

using namespace ptxrewrite;
using namespace ptxrewrite::evaluate;
using ir::EnergyEvent;

namespace {

constexpr size_t at(EnergyEvent event) {
  return static_cast<size_t>(event);
}

// Energies of rows with a few kinds of events each: 60 W, and 10 pJ + 2 pJ times the number of the event.
std::vector<EnergyRow> made_rows(size_t count, double noise) {
  std::mt19937 random(3);
  std::uniform_real_distribution<> part(0, 1);
  constexpr EnergyEvent kinds[] = {EnergyEvent::sched,    EnergyEvent::rf_read,  EnergyEvent::int_alu,
                                   EnergyEvent::int_mul,  EnergyEvent::fp_mul,   EnergyEvent::shared,
                                   EnergyEvent::noc_flit, EnergyEvent::dram_read};
  std::vector<EnergyRow> rows;
  for (size_t i = 0; i < count; ++i) {
    EnergyRow row;
    row.seconds = 0.5 + part(random);
    row.joules = 60 * row.seconds;
    for (EnergyEvent kind : kinds) {
      row.events[at(kind)] = part(random) < 0.5 ? 0 : part(random) * 5e12;
      row.joules += row.events[at(kind)] * (10 + 2 * double(at(kind))) * 1e-12;
    }
    row.joules *= 1 + noise * (part(random) - 0.5);
    rows.push_back(row);
  }
  return rows;
}

} // namespace

TEST_CASE("coefficients are found back") {
  const EnergyFit fit = fit_energy(made_rows(40, 0));
  CHECK(fit.static_watt == doctest::Approx(60).epsilon(0.001));
  for (EnergyEvent kind : {EnergyEvent::sched, EnergyEvent::int_mul, EnergyEvent::fp_mul, EnergyEvent::dram_read})
    CHECK(fit.pj[at(kind)] == doctest::Approx(10 + 2 * double(at(kind))).epsilon(0.001));
  CHECK(fit.error < 1e-4);
  CHECK(fit.error_left_out < 1e-3);
  // Events with a common proxy.
  CHECK(fit.pj[at(EnergyEvent::fp32)] == fit.pj[at(EnergyEvent::fp_mul)]);
  CHECK(fit.pj[at(EnergyEvent::dram_write)] == fit.pj[at(EnergyEvent::dram_read)]);
  CHECK(fit.pj[at(EnergyEvent::tensor)] == 0);
}

TEST_CASE("noise leaves sums about right, and nothing is negative") {
  const EnergyFit fit = fit_energy(made_rows(40, 0.1));
  CHECK(fit.static_watt == doctest::Approx(60).epsilon(0.15));
  CHECK(fit.error_left_out < 0.1);
  for (double coefficient : fit.pj)
    CHECK(coefficient >= 0);
  std::vector<EnergyRow> rows = made_rows(40, 0);
  for (EnergyRow& row : rows) // an event that correlates with less energy
    row.events[at(EnergyEvent::const_hit)] = 1e15 / row.joules;
  CHECK(fit_energy(rows).pj[at(EnergyEvent::const_hit)] >= 0);
}

TEST_CASE("no rows, no coefficients") {
  CHECK(fit_energy({}).static_watt == 0);
}

} // namespace ptxrewrite::tests::energy_fit_test
