#include "ir/machine/prepare/settled_loops.h"

#include <algorithm>

namespace ptxrewrite::ir {

SettledLoops::SettledLoops(const Function& function, const ControlFlow& flow, const DominatorTree& dominators)
    : function_(function), dominators_(dominators), forest_(function, flow, dominators),
      blocks_(forest_.loops().size()), settled_(forest_.loops().size()) {
  for (BlockId block : function.layout)
    if (const LoopId loop = forest_.innermost(block)) {
      blocks_[loop.index()].push_back(block);
      const Loop& row = forest_.loops()[loop];
      if (row.header == block && row.parent) blocks_[row.parent.index()].push_back(block);
    }
}

const Loop* SettledLoops::behind(BlockId header, BlockId branch, const Marks& marks) {
  const LoopId loop = forest_.innermost(header);
  if (!loop || forest_.loops()[loop].header != header || forest_.contains(loop, branch)) return nullptr;
  return is_settled(loop, marks) ? &forest_.loops()[loop] : nullptr;
}

// Loops inside have been asked about before, when they were entered.
bool SettledLoops::is_settled(LoopId loop, const Marks& marks) {
  if (settled_[loop.index()]) return true;
  const Loop& row = forest_.loops()[loop];
  for (BlockId block : blocks_[loop.index()]) {
    if (!marks.in_divergence[block.index()]) return false;
    if (block == row.header) continue;
    if (!marks.joins[block.index()] && !stays_unmarked(block, row)) return false;
    const LoopId inner = forest_.innermost(block);
    if (inner != loop && !settled_[inner.index()]) return false;
  }
  settled_[loop.index()] = true;
  return true;
}

// Does its immediate dominator dominate no exit of the loop? Loops with many exits are not looked at.
bool SettledLoops::stays_unmarked(BlockId block, const Loop& loop) const {
  constexpr size_t few_exits = 8;
  if (loop.exits.size() > few_exits) return false;
  const BlockId before = dominators_.immediate_dominator(block);
  return std::ranges::none_of(loop.exits,
                              [&](EdgeId exit) { return dominators_.dominates(before, function_.edges[exit].from); });
}

} // namespace ptxrewrite::ir
