// Executes a kernel from its nodes, all threads of a block side by side, and records the accesses and values of every
// node: the facts of a launch, by brute force.
#pragma once

#include "tests/fuzz/launchtime/program.h"

namespace ptxrewrite::fuzz::launchtime {

struct Outcome {
  Trace trace;
  std::vector<uint8_t> arena; // after the launch; meaningless if the trace says races, undefined or leaves_arena
};

// `arena_address`: the base of the arena, a multiple of 256.
Outcome carry_out(const Kernel& kernel, const Launch& launch, uint64_t arena_address);

} // namespace ptxrewrite::fuzz::launchtime
