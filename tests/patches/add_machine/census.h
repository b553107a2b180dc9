// The census machine's settings in a launch request, and its counters.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

// A launch with these settings runs on the machine (LaunchRequest::machines).
struct CensusSettings {};

// LaunchResult::machines.
struct CensusCounters {
  uint64_t threads = 0; // threads that reached a mark
  uint64_t blocks = 0;
};

} // namespace ptxrewrite::emulator
