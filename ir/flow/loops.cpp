// Natural loops: one per header, inner loops first, so that each block is visited at most once per nesting level.
#include "ir/flow/loops.h"

#include <algorithm>

namespace ptxrewrite::ir {

LoopForest::LoopForest(const Function& function, const ControlFlow& flow, const DominatorTree& dominators) {
  innermost_.resize(function.blocks.size());
  const std::vector<BlockId>& order = flow.reverse_postorder();

  // A header precedes the headers of the loops inside it, so reverse order visits inner loops first.
  std::vector<BlockId> work;
  for (size_t i = order.size(); i-- > 0;) {
    BlockId header = order[i];
    Loop loop;
    loop.header = header;
    for (EdgeId edge : flow.predecessors(header)) {
      BlockId from = function.edges[edge].from;
      if (!flow.reachable(from) || flow.position(from) < flow.position(header)) continue;
      if (dominators.dominates(header, from))
        loop.back_edges.push_back(edge);
      else
        irreducible_ = true;
    }
    if (loop.back_edges.empty()) continue;
    LoopId id = loops_.add(std::move(loop));
    for (EdgeId edge : loops_[id].back_edges)
      work.push_back(function.edges[edge].from);
    while (!work.empty()) {
      BlockId block = work.back();
      work.pop_back();
      LoopId inner = innermost_[block.index()];
      if (!inner) {
        innermost_[block.index()] = id;
      } else {
        // Continue from the outermost known loop around the block, which becomes a child of this loop.
        while (loops_[inner].parent)
          inner = loops_[inner].parent;
        if (inner == id) continue;
        loops_[inner].parent = id;
        block = loops_[inner].header;
      }
      if (block == header) continue;
      for (EdgeId edge : flow.predecessors(block)) {
        BlockId from = function.edges[edge].from;
        if (flow.reachable(from)) work.push_back(from);
      }
    }
    innermost_[header.index()] = id;
  }

  // Outer loops have higher numbers than the loops inside them.
  for (size_t i = loops_.size(); i-- > 0;) {
    Loop& loop = loops_[LoopId(static_cast<uint32_t>(i))];
    if (loop.parent) loop.depth = loops_[loop.parent].depth + 1;
  }
  number_loops();
  list_blocks(flow);
  for (BlockId block : order)
    for (EdgeId edge : function.successors(block))
      for (LoopId id = innermost(block); id && !contains(id, function.edges[edge].to); id = loops_[id].parent)
        loops_[id].exits.push_back(edge);
}

// Does not list the blocks of each loop of a nest again if they follow each other.
void LoopForest::list_blocks(const ControlFlow& flow) {
  order_ = flow.reverse_postorder();
  struct Extent {
    uint32_t first = UINT32_MAX, last = 0, count = 0;
  };
  std::vector<Extent> extents(loops_.size());
  for (uint32_t i = 0; i < order_.size(); ++i) {
    LoopId loop = innermost(order_[i]);
    if (!loop) continue;
    Extent& extent = extents[loop.index()];
    extent = {std::min(extent.first, i), i, extent.count + 1};
  }
  for (LoopId id : loops_.ids()) // inner loops have lower numbers
    if (LoopId parent = loops_[id].parent) {
      const Extent& inner = extents[id.index()];
      Extent& outer = extents[parent.index()];
      outer = {std::min(outer.first, inner.first), std::max(outer.last, inner.last), outer.count + inner.count};
    }
  // The other loops, which have blocks of others between their own, get lists.
  scattered_.resize(loops_.size());
  std::vector<LoopId> listed(loops_.size()); // the innermost of them around a loop, itself included
  for (size_t i = loops_.size(); i-- > 0;) {
    const LoopId id(static_cast<uint32_t>(i)), parent = loops_[id].parent;
    const Extent& extent = extents[i];
    loops_[id].blocks = std::span(order_).subspan(extent.first, extent.last - extent.first + 1);
    listed[i] = loops_[id].blocks.size() != extent.count ? id : parent ? listed[parent.index()] : parent;
  }
  const auto outer_listed = [&](LoopId id) { return id ? listed[id.index()] : id; };
  for (BlockId block : order_)
    for (LoopId id = outer_listed(innermost(block)); id; id = outer_listed(loops_[id].parent))
      scattered_[id.index()].push_back(block);
  for (LoopId id : loops_.ids())
    if (listed[id.index()] == id) loops_[id].blocks = scattered_[id.index()];
}

bool LoopForest::contains(LoopId loop, BlockId block) const {
  LoopId inner = innermost(block);
  return inner && enter_[loop.index()] <= enter_[inner.index()] && leave_[inner.index()] <= leave_[loop.index()];
}

// Outer loops have higher numbers than inner ones: sizes are summed in ascending, numbers assigned in descending order.
void LoopForest::number_loops() {
  std::vector<uint32_t> size(loops_.size(), 1), next(loops_.size(), 0);
  for (LoopId id : loops_.ids())
    if (LoopId parent = loops_[id].parent) size[parent.index()] += size[id.index()];
  enter_.resize(loops_.size());
  leave_.resize(loops_.size());
  uint32_t outermost = 0;
  for (size_t i = loops_.size(); i-- > 0;) {
    LoopId parent = loops_[LoopId(static_cast<uint32_t>(i))].parent;
    uint32_t& place = parent ? next[parent.index()] : outermost;
    enter_[i] = place;
    leave_[i] = place + size[i] - 1;
    next[i] = place + 1;
    place += size[i];
  }
}

} // namespace ptxrewrite::ir
