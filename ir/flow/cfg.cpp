// Depth-first search over the edges of the blocks in the layout.
#include "ir/flow/cfg.h"

#include <algorithm>

namespace ptxrewrite::ir {

ControlFlow::ControlFlow(const Function& function) {
  size_t count = function.blocks.size();
  predecessor_start_.assign(count + 1, 0);
  position_.assign(count, UINT32_MAX);
  if (function.layout.empty()) return;

  for (BlockId block : function.layout)
    for (EdgeId edge : function.successors(block))
      ++predecessor_start_[function.edges[edge].to.index() + 1];
  for (size_t i = 0; i < count; ++i)
    predecessor_start_[i + 1] += predecessor_start_[i];
  predecessor_edges_.resize(predecessor_start_[count]);
  std::vector<uint32_t> fill(predecessor_start_.begin(), predecessor_start_.end() - 1);
  for (BlockId block : function.layout)
    for (EdgeId edge : function.successors(block))
      predecessor_edges_[fill[function.edges[edge].to.index()]++] = edge;

  // Branch targets are visited before the fall-through block, so that the latter directly follows its predecessor.
  struct Frame {
    BlockId block;
    uint32_t next;
  };
  std::vector<Frame> stack;
  std::vector<bool> seen(count, false);
  stack.reserve(function.layout.size());
  order_.reserve(function.layout.size());
  stack.push_back({function.entry(), 0});
  seen[function.entry().index()] = true;
  while (!stack.empty()) {
    Frame& frame = stack.back();
    std::span<const EdgeId> successors = function.successors(frame.block);
    if (frame.next == successors.size()) {
      order_.push_back(frame.block);
      stack.pop_back();
      continue;
    }
    BlockId to = function.edges[successors[frame.next++]].to;
    if (seen[to.index()]) continue;
    seen[to.index()] = true;
    stack.push_back({to, 0});
  }
  std::reverse(order_.begin(), order_.end());
  for (uint32_t i = 0; i < order_.size(); ++i)
    position_[order_[i].index()] = i;
}

} // namespace ptxrewrite::ir
