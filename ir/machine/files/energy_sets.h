// Coefficients of energy by event, in pJ, in sets that never mix (energy.def). emulator/timing/energy.h applies them.
#pragma once

#include "ir/machine/files/energy_events.h"

#include <span>

namespace ptxrewrite::ir {

struct EnergySet {
  std::string_view name, about;
  std::array<double, energy_event_count> pj{};
  double static_watt = 0; // 0: the set does not say
};
std::span<const EnergySet> energy_sets();
// One more, for the rest of the program: of a user's machine. What its texts point to has to stay.
void add_energy_set(const EnergySet& set);

} // namespace ptxrewrite::ir
