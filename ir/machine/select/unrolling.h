// Loop unrolling: how many instructions the copies of a loop body add to the code. SSA form only. Private to
// ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

#include <vector>

namespace ptxrewrite::ir {

struct Unrolling {
  uint32_t instructions = 0;   // machine instructions that the copies add
  uint32_t copies = 1;         // consecutive copies of the body
  bool straight = false;       // all trips: no loop is left
  std::vector<BlockId> blocks; // of one copy
};
// The loops that are copied, inner ones first: those that are counted, and contain no loop but such that all of their
// trips are copied. Not those with several entries or exits, those that are left after a block that not all trips
// execute, or those that a pragma keeps rolled.
// `together` tells which loops all lanes leave after the same number of trips.
std::vector<Unrolling> unrolled_loops(const LoweringContext& context, const UniformValues& together);

} // namespace ptxrewrite::ir
