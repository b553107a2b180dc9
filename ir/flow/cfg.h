// Predecessors and reverse post-order of a function's control-flow graph. Takes time linear in blocks and edges.
#pragma once

#include "ir/core/function.h"

#include <span>
#include <vector>

namespace ptxrewrite::ir {

class ControlFlow {
public:
  explicit ControlFlow(const Function& function);

  // Edges into a block, in edge order. Blocks outside the layout have none.
  std::span<const EdgeId> predecessors(BlockId block) const {
    uint32_t begin = predecessor_start_[block.index()];
    return std::span(predecessor_edges_).subspan(begin, predecessor_start_[block.index() + 1] - begin);
  }
  // Blocks reachable from the entry, in reverse post-order.
  const std::vector<BlockId>& reverse_postorder() const { return order_; }
  bool reachable(BlockId block) const { return position_[block.index()] != UINT32_MAX; }
  // Index in the reverse post-order; UINT32_MAX if unreachable.
  uint32_t position(BlockId block) const { return position_[block.index()]; }

private:
  std::vector<uint32_t> predecessor_start_;
  std::vector<EdgeId> predecessor_edges_;
  std::vector<BlockId> order_;
  std::vector<uint32_t> position_;
};

} // namespace ptxrewrite::ir
