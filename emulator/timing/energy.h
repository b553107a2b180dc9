// Energy of a launch by counting events, under several sets of coefficients that never mix
// (ir/machine/files/energy.def).
//
//   EventCounts events = events_of(input);
//   for (const EnergySet& set : energy_sets()) energy(set, events, seconds)
#pragma once

#include "emulator/timing/model.h"
#include "ir/machine/files/energy_sets.h"

namespace ptxrewrite::timing {

using ir::add_energy_set;
using ir::energy_event_count;
using ir::energy_sets;
using ir::EnergyEvent;
using ir::EnergySet;
using ir::EventCounts;
using ir::spelling;

// The event of the unit that executes one machine instruction; EnergyEvent::count: none.
EnergyEvent unit_event(Cause unit, const ir::Form& form);

// The events of a launch.
EventCounts events_of(const ModelInput& input);

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
