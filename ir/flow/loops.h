// Natural loops, from back edges of the dominator tree. Irreducible cycles are reported and do not become loops.
#pragma once

#include "ir/flow/dominators.h"

#include <span>
#include <vector>

namespace ptxrewrite::ir {

struct LoopTag;
using LoopId = Id<LoopTag>;

struct Loop {
  BlockId header;
  LoopId parent;
  uint32_t depth = 1;              // outermost = 1
  std::span<const BlockId> blocks; // in reverse post-order; valid as long as the forest
  std::vector<EdgeId> back_edges;
  std::vector<EdgeId> exits;
};

class LoopForest {
public:
  LoopForest(const Function& function, const ControlFlow& flow, const DominatorTree& dominators);
  LoopForest(LoopForest&&) = default;
  LoopForest& operator=(LoopForest&&) = default;
  const Table<LoopId, Loop>& loops() const { return loops_; }
  LoopId innermost(BlockId block) const { return innermost_[block.index()]; }
  uint32_t depth(BlockId block) const { return innermost(block) ? loops_[innermost(block)].depth : 0; }
  bool contains(LoopId loop, BlockId block) const;
  bool irreducible() const { return irreducible_; }

private:
  void number_loops();
  void list_blocks(const ControlFlow& flow);

  Table<LoopId, Loop> loops_;
  std::vector<LoopId> innermost_;
  std::vector<uint32_t> enter_, leave_; // depth-first numbering of the loops, for O(1) containment
  std::vector<BlockId> order_;          // reverse post-order; loops whose blocks follow each other are parts of it
  std::vector<std::vector<BlockId>> scattered_; // blocks of the other loops
  bool irreducible_ = false;
};

} // namespace ptxrewrite::ir
