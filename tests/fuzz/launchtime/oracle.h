// Carries a kernel out from its nodes, all threads of a block side by side, and notes what every node touches and
// which values it sees: the truth about a launch, by brute force.
#pragma once

#include "tests/fuzz/launchtime/program.h"

namespace ptxrewrite::fuzz::launchtime {

struct Outcome {
  Trace trace;
  std::vector<uint8_t> arena; // afterwards; means nothing where the trace says races, undefined or leaves_arena
};

// `arena_address`: where the arena lies, a multiple of 256.
Outcome carry_out(const Kernel& kernel, const Launch& launch, uint64_t arena_address);

} // namespace ptxrewrite::fuzz::launchtime
