// The events of a launch that consume energy; energy_sets.h has their coefficients.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ptxrewrite::ir {

enum class EnergyEvent : uint8_t {
  // Per machine instruction of a warp.
  ibuffer,
  sched,
  icache_hit,
  opcoll,
  // Per active lane and 32-bit register.
  rf_read,
  rf_write,
  // Per active lane and machine instruction of the unit.
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
  // Per access of a warp; for shared memory, per pass over the banks.
  const_hit,
  shared,
  // Per line that an access requests.
  l1_read_hit,
  l1_read_miss,
  l1_write_hit,
  l1_write_miss,
  // Per 32 bytes between L1 and L2, and per request.
  noc_flit,
  // Per sector of 32 bytes.
  l2_read_hit,
  l2_read_miss,
  l2_write_hit,
  l2_write_miss,
  dram_read,
  dram_write,
  // Events of techniques: per access of DAC's tuple queue, and of a warp's queue of addresses or predicates.
  affine_tuple,
  affine_entry,
  count
};
inline constexpr size_t energy_event_count = static_cast<size_t>(EnergyEvent::count);
std::string_view spelling(EnergyEvent event);

using EventCounts = std::array<double, energy_event_count>;

} // namespace ptxrewrite::ir
