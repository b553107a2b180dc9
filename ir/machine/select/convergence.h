// Places where an assembler cannot prove that all lanes of a warp are converged: shuffles and votes there get a slow
// path that gathers the named lanes. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// Machine instructions of the slow paths: those that only lanes that are apart run.
uint32_t slow_paths_of_exchanges(const LoweringContext& context, const ControlFlow& flow,
                                 const PostDominatorTree& post_dominators, const UniformValues& uniform);

// Loops that some lanes leave before others and in which lanes may wait for each other give the others their turn at
// the end of each trip: adds what that costs to the branches back.
void weigh_waiting_loops(LoweringContext& context, const ControlFlow& flow, const UniformValues& uniform);

} // namespace ptxrewrite::ir
