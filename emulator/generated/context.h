// State of a warp and its block that generated code reads: filled in before the code is entered.
#pragma once

#include "emulator/core/block.h"

#include <cstddef>

namespace ptxrewrite::emulator::generated {

struct CodeContext {
  std::byte* registers = nullptr; // of the activation
  const std::byte* thread_specials = nullptr;
  const std::byte* block_specials = nullptr;
  const std::byte* parameters = nullptr;
  std::byte* shared = nullptr;
  uint64_t shared_bytes = 0;
  const MemoryRange* ranges = nullptr; // range of memory operation i: at byte i * sizeof(AccessSite)
  RegionCounter* regions = nullptr;
  GuardCounter* guards = nullptr;
  const MicroOp* meeting = nullptr; // where the lanes reconverge; nullptr: nowhere in this activation
  int64_t fuel = 0;                 // in and out
  Warp* warp = nullptr;
  uint32_t active = 0;
  uint32_t live = 0;
};

// Returns the micro-operation to continue with, as a Handler does; or not_for_this_warp: nothing was executed.
using Code = const MicroOp* (*)(CodeContext*);
inline const MicroOp* const not_for_this_warp = reinterpret_cast<const MicroOp*>(uintptr_t(1));

} // namespace ptxrewrite::emulator::generated
