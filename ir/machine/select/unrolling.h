// Loop unrolling: how many instructions the copies of a loop body add to the code. SSA form only. Private to
// ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

struct Unrolling {
  uint32_t instructions = 0;   // machine instructions that the copies add
  uint32_t copies = 1;         // consecutive copies of the body
  std::vector<BlockId> blocks; // of one copy
};
// Adds nothing if the block is not a loop header, or if the loop is not counted, contains another loop, has several
// exits, is left after a block that not all trips execute, or is kept rolled by a pragma.
// `together` tells which loops all lanes leave after the same number of trips.
Unrolling unrolling_of(const LoweringContext& context, const UniformValues& together, BlockId header);

} // namespace ptxrewrite::ir
