// What a memory instruction leaves for its next execution: the allocation that it accessed, and how the addresses of
// the lanes lay. In loops they mostly lie the same way again, moved by one distance; then all that depends on their
// differences (bounds, alignment, which loop moves the bytes) is known.
#pragma once

#include "emulator/memory/memory.h"

#include <array>
#include <cstdint>
#include <memory>

namespace ptxrewrite::emulator {

enum class LanePattern : uint8_t {
  consecutive,      // each lane one access behind the lane before it
  same,             // all at one address
  consecutive_runs, // runs of AddressPattern::run lanes, consecutive in each
  same_runs,        // likewise, at one address in each
  scattered,
};

struct AddressPattern {
  static constexpr unsigned lanes = 32;

  // From the address of the first active lane, of each lane; of inactive ones 0. As the instruction's base has them,
  // and as the bytes lie on the host: in local memory the lanes are apart.
  alignas(64) std::array<int64_t, lanes> distance{};
  alignas(64) std::array<int32_t, lanes> narrow_distance{};
  alignas(64) std::array<int32_t, lanes> host_distance{};
  alignas(64) std::array<int32_t, lanes> active{}; // -1 or 0: a vector's mask
  int64_t lowest = 0, highest = 0;                 // of `distance`
  uint32_t mask = 0;                               // active lanes
  LanePattern kind = LanePattern::scattered;
  bool in_local = false; // local memory, also where the addresses are generic
  uint8_t run = 0;
};

struct AccessSite {
  MemoryRange range;
  AddressPattern* pattern = nullptr; // null: not known, or not worth a comparison
  std::unique_ptr<AddressPattern> storage;
  bool held = false;   // the pattern has been met again
  uint8_t backoff = 0; // executions that are left out after a pattern that was not met again: more each time
  uint8_t wait = 0;
};

} // namespace ptxrewrite::emulator
