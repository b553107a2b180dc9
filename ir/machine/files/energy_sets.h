// Energy coefficients by event, in pJ, in separate sets (energy.def). emulator/timing/energy.h applies them.
#pragma once

#include "ir/machine/files/energy_events.h"

#include <span>

namespace ptxrewrite::ir {

struct EnergySet {
  std::string_view name, about;
  std::array<double, energy_event_count> pj{};
  double static_watt = 0; // 0: not specified by the set
};
std::span<const EnergySet> energy_sets();
// Adds a set, of a user's machine, for the rest of the program. The texts that it refers to must stay allocated.
void add_energy_set(const EnergySet& set);

} // namespace ptxrewrite::ir
