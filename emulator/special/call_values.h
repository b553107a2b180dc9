// Locations of the arguments and results of a call while it executes.
#pragma once

#include "emulator/core/block.h"

namespace ptxrewrite::emulator {

// Returns the lane array of a call's value in its activation.
inline std::byte* lanes_of(const Warp& warp, const CallValue& value, const Activation& activation) {
  const bool is_register = value.lanes.base() == LaneBase::registers;
  return (is_register ? activation.registers : warp.base[value.lanes.base_index()]) + value.lanes.offset();
}

// Returns one lane's bytes of a value that is not a predicate.
inline std::byte* bytes_of(const Warp& warp, const CallValue& value, const Activation& activation, unsigned lane) {
  if (value.lanes) return lanes_of(warp, value, activation) + lane * (value.bits / 8u);
  if (!value.slot.in_local) return activation.registers + value.slot.offset + lane * value.slot.stride;
  const uint64_t thread = uint64_t(warp.index) * warp_size + lane;
  return warp.block->local + thread * warp.block->local_stride + activation.local_offset + value.slot.offset;
}

} // namespace ptxrewrite::emulator
