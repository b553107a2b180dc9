// Loops that the spread of divergence (uniform.h) need not enter again: in nested loops each branch reaches all loops
// inside, whose blocks are marked already.
//
// A branch outside of a loop marks a block as a join of its lanes if it dominates the branch from the block's immediate
// dominator on. For a block of the loop, other than the header, that dominator is in the loop, and dominates an exit of
// the loop, too. So a loop is settled once all of its blocks are in divergence, and each is a join or has an immediate
// dominator that dominates no exit.
#pragma once

#include "ir/flow/loops.h"

#include <vector>

namespace ptxrewrite::ir {

class SettledLoops {
public:
  SettledLoops(const Function& function, const ControlFlow& flow, const DominatorTree& dominators);

  // Blocks in divergence and joins so far; both only grow.
  struct Marks {
    const std::vector<bool>&in_divergence, &joins; // by BlockId
  };
  // The settled loop with this header that does not contain the branch; nullptr if there is none. The spread does not
  // end inside of it: the header would be a nearer post-dominator of the branch.
  const Loop* behind(BlockId header, BlockId branch, const Marks& marks);

private:
  bool is_settled(LoopId loop, const Marks& marks);
  bool stays_unmarked(BlockId block, const Loop& loop) const;

  const Function& function_;
  const DominatorTree& dominators_;
  LoopForest forest_;
  std::vector<std::vector<BlockId>> blocks_; // by loop: its blocks and the headers of the loops directly inside
  std::vector<bool> settled_;                // by loop
};

} // namespace ptxrewrite::ir
