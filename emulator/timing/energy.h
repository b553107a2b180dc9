// Energy of a launch by counting events, under several sets of coefficients that never mix (energy.def).
//
//   EventCounts events = events_of(input);
//   for (const EnergySet& set : energy_sets()) energy(set, events, seconds)
#pragma once

#include "emulator/timing/energy_events.h"
#include "emulator/timing/model.h"

#include <array>
#include <span>
#include <string_view>

namespace ptxrewrite::timing {

// Of the unit that does the work of one machine instruction; count: none.
EnergyEvent unit_event(Cause unit, const ir::Form& form);

// Of a launch.
EventCounts events_of(const ModelInput& input);

struct EnergySet {
  std::string_view name, about;
  std::array<double, energy_event_count> pj{};
  double static_watt = 0; // 0: the set does not say
};
std::span<const EnergySet> energy_sets();
// One more, for the rest of the program: of a user's machine. What its texts point to has to stay.
void add_energy_set(const EnergySet& set);

// In joule.
struct Energy {
  double front_end = 0; // buffers, scheduling, fetch, operand collectors
  double registers = 0;
  double units = 0;
  double memory = 0;   // caches, network, DRAM, shared memory
  double constant = 0; // static power times time
  double dynamic() const { return front_end + registers + units + memory; }
  double all() const { return dynamic() + constant; }
};
Energy energy(const EnergySet& set, const EventCounts& events, double seconds);

} // namespace ptxrewrite::timing
