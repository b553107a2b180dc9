// Dominator and post-dominator trees: Lengauer and Tarjan's algorithm with path compression, E log V on any graph; for
// few blocks Cooper, Harvey and Kennedy's, which is quadratic but has no tables to set up.
#pragma once

#include "ir/flow/cfg.h"

#include <span>
#include <vector>

namespace ptxrewrite::ir {

class DominatorTree {
public:
  DominatorTree(const Function& function, const ControlFlow& flow);

  // Invalid for the entry and for unreachable blocks.
  BlockId immediate_dominator(BlockId block) const { return parent_[block.index()]; }
  bool dominates(BlockId upper, BlockId lower) const;
  bool strictly_dominates(BlockId upper, BlockId lower) const { return upper != lower && dominates(upper, lower); }
  // In reverse post-order.
  std::span<const BlockId> children(BlockId block) const {
    const uint32_t begin = child_start_[block.index()];
    return std::span(children_).subspan(begin, child_start_[block.index() + 1] - begin);
  }
  uint32_t depth(BlockId block) const { return depth_[block.index()]; }
  // Position in a depth-first walk: a block precedes all blocks that it dominates. UINT32_MAX if unreachable.
  uint32_t preorder(BlockId block) const { return enter_[block.index()]; }

private:
  // By the positions of immediate dominators in the reverse post-order.
  void number(const Function& function, const ControlFlow& flow, std::span<const uint32_t> immediate);

  std::vector<BlockId> parent_;
  std::vector<uint32_t> child_start_;
  std::vector<BlockId> children_;
  std::vector<uint32_t> enter_, last_,
      depth_; // depth-first numbers, the last one among those dominated, for O(1) queries
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
  // `leaves`: by position in the reverse post-order, whether the virtual exit succeeds the block.
  void walk_back(const Function& function, const ControlFlow& flow, std::span<const uint8_t> leaves);
  void use_semidominators(const Function& function, const ControlFlow& flow, std::span<const uint8_t> leaves);

  std::vector<BlockId> parent_;
  std::vector<uint32_t> enter_, leave_;
};

} // namespace ptxrewrite::ir
