// Dominator and post-dominator trees (Lengauer and Tarjan's algorithm with path compression: E log V on any graph).
#pragma once

#include "ir/flow/cfg.h"

namespace ptxrewrite::ir {

class DominatorTree {
public:
  DominatorTree(const Function& function, const ControlFlow& flow);

  // Invalid for the entry and for unreachable blocks.
  BlockId immediate_dominator(BlockId block) const { return parent_[block.index()]; }
  bool dominates(BlockId upper, BlockId lower) const;
  bool strictly_dominates(BlockId upper, BlockId lower) const { return upper != lower && dominates(upper, lower); }
  const std::vector<BlockId>& children(BlockId block) const { return children_[block.index()]; }
  uint32_t depth(BlockId block) const { return depth_[block.index()]; }
  // Position in a depth-first walk: a block precedes all blocks that it dominates. UINT32_MAX if unreachable.
  uint32_t preorder(BlockId block) const { return enter_[block.index()]; }

private:
  std::vector<BlockId> parent_;
  std::vector<std::vector<BlockId>> children_;
  std::vector<uint32_t> enter_, leave_, depth_; // depth-first numbering of the tree, for O(1) queries
};

// Post-dominance with one virtual exit. It succeeds blocks that end in ret, exit, trap, brkpt or a call that does not
// return, blocks that contain a guarded ret or exit, and one block of each endless loop.
class PostDominatorTree {
public:
  PostDominatorTree(const Function& function, const ControlFlow& flow);

  // Invalid if only the virtual exit post-dominates the block.
  BlockId immediate_post_dominator(BlockId block) const { return parent_[block.index()]; }
  bool post_dominates(BlockId lower, BlockId upper) const;

private:
  std::vector<BlockId> parent_;
  std::vector<uint32_t> enter_, leave_;
};

} // namespace ptxrewrite::ir
