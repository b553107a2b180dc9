// Where the ways that part at a branch come together again: the blocks in which it matters, for block parameters, which
// way was taken. Two ways from the branch to such a block have nothing in common but their ends.
#pragma once

#include "ir/flow/dominators.h"

#include <vector>

namespace ptxrewrite::ir {

class DivergentJoins {
public:
  explicit DivergentJoins(const Function& function, const ControlFlow& flow);

  // The joins of the branch at the end of `branch`; what lies behind its immediate post-dominator, or is reached only
  // by executing the branch again, is none of its business. Sorted, without repetition. Linear in the blocks between.
  std::vector<BlockId> of(BlockId branch);

private:
  const Function& function_;
  const ControlFlow& flow_;
  PostDominatorTree post_dominators_;
  std::vector<BlockId>
      label_; // by block: through which successor, or since which join, it is reached; invalid: not yet
};

} // namespace ptxrewrite::ir
