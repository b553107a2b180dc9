// Joins of divergent control flow: the blocks whose block parameters may depend on the direction that a branch took.
// Two paths with no common blocks but their ends lead from the branch to each such block.
#pragma once

#include "ir/flow/dominators.h"

#include <vector>

namespace ptxrewrite::ir {

class DivergentJoins {
public:
  explicit DivergentJoins(const Function& function, const ControlFlow& flow);

  // The joins of the branch at the end of `branch`, sorted, without duplicates; without blocks after its immediate
  // post-dominator or reached only through the branch again. Takes time linear in the blocks between.
  std::vector<BlockId> of(BlockId branch);

private:
  const Function& function_;
  const ControlFlow& flow_;
  PostDominatorTree post_dominators_;
  // By block: the successor or join through which it is reached; invalid: not reached yet.
  std::vector<BlockId> label_;
};

} // namespace ptxrewrite::ir
