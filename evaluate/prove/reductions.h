// Votes and reductions of a whole warp as the shuffles that they replace, so that both kernels have the same
// instructions.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

#include <vector>

namespace ptxrewrite::prove {

// In the rewritten kernel, replaces these by the original's shuffles and steps for the same total, if they combine the
// values of all 32 lanes once, and all lanes of each warp get there:
//
//   redux.sync.STEP                    any STEP of both
//   popc(vote.sync.ballot p)           a sum of 0 and 1 (p)
//   selp(1, 0, vote.sync.any p)        or, maximum of 0 and 1 (p)
//   selp(1, 0, vote.sync.all p)        and, minimum of 0 and 1 (p)
//
// Whether the input is that of the original is left to the comparison of the shuffles. A tree of shfl.down has the
// total in lane 0 alone; then no other lane may read it, except through a broadcast of lane 0's.
void take_reductions_apart(const ir::Function& original, ir::Function& rewritten,
                           const std::vector<transforms::Obligation>& ledger);

} // namespace ptxrewrite::prove
