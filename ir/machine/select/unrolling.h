// Loop unrolling: how many instructions the copies of a loop body add to the code. SSA form only. Private to
// ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

struct Unrolling {
  uint32_t instructions = 0;   // of the machine, that copies add
  uint32_t copies = 1;         // that stand one after the other
  std::vector<BlockId> blocks; // of one copy
};
// Nothing is added if no loop begins with the block, if the loop is not counted, has another loop in it or several
// exits, is left behind a block that not all trips execute, or is kept rolled by a pragma.
// `together` knows which loops all lanes leave after as many trips.
Unrolling unrolling_of(const LoweringContext& context, const UniformValues& together, BlockId header);

} // namespace ptxrewrite::ir
