// Puts the shuffles and sums of the original in place of a rewritten kernel's `redux.sync`, which computes the same if
// all 32 lanes of the warp execute it: then each instruction is compared with its counterpart.
//
// That the shuffles add each lane once is checked here for all lanes by computing the set of lanes in each result, and
// the lanes' company by launch-uniform branches and the ledger's condition on whole warps, independently of the pass.
#pragma once

#include "ir/core/function.h"
#include "transforms/manager/pass.h"

#include <vector>

namespace ptxrewrite::prove {

// Both kernels must be in SSA form, with the values of the original. A redux.sync without such a tree is kept.
void take_reductions_apart(const ir::Function& original, ir::Function& rewritten,
                           const std::vector<transforms::Obligation>& ledger);

} // namespace ptxrewrite::prove
