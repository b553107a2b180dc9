// Determined by assembling wide multiply-adds with one literal in, between and after loops: see constant_ranges.h.
#include "ir/machine/fuse/constant_ranges.h"

#include <algorithm>

namespace ptxrewrite::ir {

ConstantRanges::ConstantRanges(const LoweringContext& context)
    : context_(context), loops_(context.function, context.flow, context.dominators) {
  is_branching_.resize(loops_.loops().size());
  for (LoopId loop : loops_.loops().ids()) {
    size_t beginnings = 0;
    for (BlockId block : loops_.loops()[loop].blocks) {
      beginnings += begins_anew(block);
      if (beginnings > 1) break;
    }
    if (beginnings < 2) continue;
    branching_.push_back(loop);
    is_branching_[loop.index()] = true;
  }
}

// False if the block only continues its single predecessor.
bool ConstantRanges::begins_anew(BlockId block) const {
  const std::span<const EdgeId> edges = context_.flow.predecessors(block);
  return edges.size() != 1 || context_.function.successors(context_.function.edges[edges[0]].from).size() != 1;
}

// All blocks on paths from `start` (or to it, if `backwards`) that do not pass through `without`.
std::vector<bool> ConstantRanges::reached(BlockId start, BlockId without, bool backwards) const {
  const Function& function = context_.function;
  std::vector<bool> seen(function.blocks.size());
  std::vector<BlockId> work{start};
  while (!work.empty()) {
    const BlockId block = work.back();
    work.pop_back();
    auto visit = [&](BlockId next) {
      if (next == without || seen[next.index()]) return;
      seen[next.index()] = true;
      work.push_back(next);
    };
    if (backwards)
      for (EdgeId edge : context_.flow.predecessors(block))
        visit(function.edges[edge].from);
    else
      for (EdgeId edge : function.successors(block))
        visit(function.edges[edge].to);
  }
  return seen;
}

bool ConstantRanges::keeps(BlockId from, BlockId to) const {
  if (from == to) return true;
  if (!context_.dominators.dominates(from, to)) return false;
  if (branching_.empty()) return true;
  // Most often the answer is the innermost loop of `to`.
  const LoopId innermost = loops_.innermost(to);
  if (innermost && is_branching_[innermost.index()] && !loops_.contains(innermost, from)) return false;
  const std::vector<bool> behind = reached(from, from, false), ahead = reached(to, from, true);
  return std::ranges::none_of(branching_, [&](LoopId loop) {
    if (loops_.contains(loop, from)) return false;
    const BlockId header = loops_.loops()[loop].header;
    return loops_.contains(loop, to) || (behind[header.index()] && ahead[header.index()]);
  });
}

} // namespace ptxrewrite::ir
