// Energy of a launch by counting events, under several sets of coefficients that never mix (energy.def).
//
//   EventCounts events = events_of(input);
//   for (const EnergySet& set : energy_sets()) energy(set, events, seconds)
#pragma once

#include "emulator/timing/model.h"

#include <array>
#include <span>
#include <string_view>

namespace ptxrewrite::timing {

enum class EnergyEvent : uint8_t {
  // By machine instruction of a warp.
  ibuffer,
  sched,
  icache_hit,
  opcoll,
  // By active lane and 32-bit register.
  rf_read,
  rf_write,
  // By active lane and machine instruction of the unit.
  int_alu,
  int_mul,
  fp32,
  fp_mul,
  fp64,
  dp_mul,
  sqrt,
  lg2,
  sin,
  ex2,
  tensor,
  tex,
  // By access of a warp; of shared memory, by pass over the banks.
  const_hit,
  shared,
  // By line that an access asks for.
  l1_read_hit,
  l1_read_miss,
  l1_write_hit,
  l1_write_miss,
  // By 32 bytes between L1 and L2, and by request.
  noc_flit,
  // By sector of 32 bytes.
  l2_read_hit,
  l2_read_miss,
  l2_write_hit,
  l2_write_miss,
  dram_read,
  dram_write,
  count
};
inline constexpr size_t energy_event_count = static_cast<size_t>(EnergyEvent::count);
std::string_view spelling(EnergyEvent event);

using EventCounts = std::array<double, energy_event_count>;

// Of a launch.
EventCounts events_of(const ModelInput& input);

struct EnergySet {
  std::string_view name, about;
  std::array<double, energy_event_count> pj{};
  double static_watt = 0; // 0: the set does not say
};
std::span<const EnergySet> energy_sets();

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
