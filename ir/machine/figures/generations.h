// First compute capability of each hardware feature that the lowering depends on. Private to ir/machine.
#pragma once

#include <cstdint>

namespace ptxrewrite::ir {

constexpr uint32_t first_uniform_datapath = 75;
constexpr uint32_t first_separate_lanes = 70;    // each lane has a program counter of its own
constexpr uint32_t first_clean_barriers = 80;    // what gathers lanes is not cleared before each use
constexpr uint32_t first_combined_atomics = 70;  // lanes of a warp elect one that does the atomic operation for all
constexpr uint32_t first_warp_reductions = 80;   // redux
constexpr uint32_t first_joining_barriers = 90;  // lanes that leave a loop or a barrier are together again
constexpr uint32_t first_loaded_parameters = 90; // operands no longer name constant banks, a load brings them

// Accesses may name uniform registers, two for an address, instead of the lanes' own.
constexpr bool has_uniform_addresses(uint32_t compute_capability) {
  return compute_capability >= first_uniform_datapath && compute_capability < 80;
}

// Each barrier that gathers lanes again is cleared first (BMOV) where lanes have been separate for the first time.
constexpr uint16_t barrier_clearing(uint32_t compute_capability) {
  return compute_capability >= first_separate_lanes && compute_capability < first_clean_barriers ? 1 : 0;
}

} // namespace ptxrewrite::ir
