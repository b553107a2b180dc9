// Determined by assembling wide multiply-adds with one literal in, between and after loops: see constant_ranges.h.
#include "ir/machine/fuse/constant_ranges.h"

#include <utility>

namespace ptxrewrite::ir {

// Sets of blocks that grow towards the root of the dominator tree, with path compression. Each block but the root of
// its set remembers whether the way up to the root, the root excluded, has an interruption.
class ConstantRanges::Ways {
public:
  explicit Ways(size_t count) : up_(count), interrupted_(count, false) {}

  struct Way {
    BlockId root;
    bool interrupted;
  };
  Way find(BlockId block) {
    path_.clear();
    for (; up_[block.index()]; block = up_[block.index()])
      path_.push_back(block);
    bool interrupted = false;
    for (size_t i = path_.size(); i-- > 0;) {
      interrupted |= interrupted_[path_[i].index()];
      interrupted_[path_[i].index()] = interrupted;
      up_[path_[i].index()] = block;
    }
    return {block, interrupted};
  }
  void link(BlockId block, BlockId dominator, bool interrupted) {
    up_[block.index()] = dominator;
    interrupted_[block.index()] = interrupted;
  }

private:
  std::vector<BlockId> up_;
  std::vector<bool> interrupted_;
  std::vector<BlockId> path_;
};

ConstantRanges::ConstantRanges(const LoweringContext& context) : context_(context) {
  const LoopForest loops(context.function, context.flow, context.dominators);
  std::vector<bool> interrupted(context.function.blocks.size());
  bool any = false;
  for (const Loop& loop : loops.loops()) {
    size_t beginnings = 0;
    for (BlockId block : loop.blocks) {
      beginnings += begins_anew(block);
      if (beginnings > 1) break;
    }
    if (beginnings < 2) continue;
    interrupted[loop.header.index()] = any = true;
  }
  if (any) find_interruptions(std::move(interrupted));
}

// The headers at first, `interrupted` becomes true for all blocks that may be reached from their immediate dominators
// by way of a header, which takes linear time from the leaves of the dominator tree to its root: the ways between the
// blocks that one block dominates immediately lead through blocks further down, which are known by then.
void ConstantRanges::find_interruptions(std::vector<bool> interrupted) {
  const std::vector<BlockId>& order = context_.flow.reverse_postorder();
  Ways ways(interrupted.size());
  std::vector<std::vector<BlockId>> next(interrupted.size()); // siblings in the tree that follow a block
  std::vector<BlockId> work;
  for (size_t i = order.size(); i-- > 0;) {
    const std::span<const BlockId> siblings = context_.dominators.children(order[i]);
    for (BlockId block : siblings)
      for (EdgeId edge : context_.flow.predecessors(block)) {
        const BlockId from = context_.function.edges[edge].from;
        if (from == order[i] || !context_.flow.reachable(from)) continue;
        const Ways::Way way = ways.find(from);
        if (way.interrupted) interrupted[block.index()] = true;
        next[way.root.index()].push_back(block);
      }
    for (BlockId block : siblings)
      if (interrupted[block.index()]) work.push_back(block);
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      for (BlockId sibling : next[block.index()]) {
        if (interrupted[sibling.index()]) continue;
        interrupted[sibling.index()] = true;
        work.push_back(sibling);
      }
    }
    for (BlockId block : siblings)
      ways.link(block, order[i], interrupted[block.index()]);
  }
  interruption_.resize(interrupted.size());
  for (BlockId block : order) {
    const BlockId above = context_.dominators.immediate_dominator(block);
    interruption_[block.index()] = interrupted[block.index()] ? block : above ? interruption_[above.index()] : above;
  }
}

// False if the block only continues its single predecessor.
bool ConstantRanges::begins_anew(BlockId block) const {
  const std::span<const EdgeId> edges = context_.flow.predecessors(block);
  return edges.size() != 1 || context_.function.successors(context_.function.edges[edges[0]].from).size() != 1;
}

bool ConstantRanges::keeps(BlockId from, BlockId to) const {
  if (from == to) return true;
  if (!context_.dominators.dominates(from, to)) return false;
  if (interruption_.empty() || !interruption_[to.index()]) return true;
  return context_.dominators.dominates(interruption_[to.index()], from);
}

} // namespace ptxrewrite::ir
