// Places where an assembler cannot prove that all lanes of a warp are converged: shuffles and votes there get a slow
// path that gathers the named lanes. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// True if any shuffle, vote or warp barrier is in the function. Without one there are no slow paths.
bool has_exchanges(const Function& function);

// Total size of the slow paths in machine instructions; only diverged lanes execute them.
uint32_t slow_paths_of_exchanges(const LoweringContext& context, const ControlFlow& flow,
                                 const PostDominatorTree& post_dominators, const UniformValues& uniform);

// In loops that some lanes leave before others and in which lanes may wait for one another, the end of each trip yields
// to the other lanes: adds the cost of this to the back branches.
void weigh_waiting_loops(LoweringContext& context, const ControlFlow& flow, const UniformValues& uniform);

} // namespace ptxrewrite::ir
