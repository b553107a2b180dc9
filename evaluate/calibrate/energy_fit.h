// Energy coefficients from measured energies: joules = static power x time + sum of coefficient x events, by least
// squares without negative coefficients.
#pragma once

#include "emulator/timing/energy.h"

#include <span>

namespace ptxrewrite::evaluate {

struct EnergyRow {
  ir::EventCounts events{};
  double seconds = 0, joules = 0;
};

struct EnergyFit {
  ir::EventCounts pj{};
  double static_watt = 0;
  double error = 0;          // mean of the relative errors over all rows
  double error_left_out = 0; // the same, with each row predicted by a fit to the others
};

// Events that always occur together, or that no row has, share the coefficient of a proxy: the whole front end that of
// `sched`, additions that of multiplications of the same unit, special functions that of `sqrt`, DRAM writes that of
// DRAM reads. Events without a proxy get coefficient 0.
EnergyFit fit_energy(std::span<const EnergyRow> rows);

} // namespace ptxrewrite::evaluate
