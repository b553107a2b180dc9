// The census machine as a launch asks for it, and what it counts.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

// With these the launch runs on the machine (LaunchRequest::machines).
struct CensusSettings {};

// LaunchResult::machines.
struct CensusCounters {
  uint64_t threads = 0; // that came to a mark
  uint64_t blocks = 0;
};

} // namespace ptxrewrite::emulator
