// Every block that the branch reaches gets a label: the successor through which it is reached. Where two labels meet,
// the block is a join and becomes a label of its own. Blocks are taken in reverse post-order until nothing changes; a
// label changes at most twice, from none to one to the block's own.
#include "ir/flow/divergent_joins.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::ir {

DivergentJoins::DivergentJoins(const Function& function, const ControlFlow& flow)
    : function_(function), flow_(flow), post_dominators_(function, flow), label_(function.blocks.size()) {}

std::vector<BlockId> DivergentJoins::of(BlockId branch) {
  const BlockId end = post_dominators_.immediate_post_dominator(branch);
  std::vector<BlockId> joins, touched;
  std::set<std::pair<uint32_t, BlockId>> work; // by place in the reverse post-order
  auto reach = [&](BlockId block, BlockId label) {
    if (block == branch || !flow_.reachable(block)) return;
    BlockId& known = label_[block.index()];
    if (known == label) return;
    // A successor of the branch is its own label, too, but no join yet.
    if (known == block && std::ranges::find(joins, block) != joins.end()) return;
    if (!known) {
      known = label;
      touched.push_back(block);
    } else {
      known = block;
      joins.push_back(block);
    }
    if (block != end) work.emplace(flow_.position(block), block);
  };
  for (EdgeId edge : function_.successors(branch)) {
    const BlockId next = function_.edges[edge].to;
    // Two edges into one block may bring it different arguments.
    const bool again = next != branch && flow_.reachable(next) && label_[next.index()] == next;
    if (again && std::ranges::find(joins, next) == joins.end()) joins.push_back(next);
    reach(next, next);
  }
  while (!work.empty()) {
    const BlockId block = work.begin()->second;
    work.erase(work.begin());
    for (EdgeId edge : function_.successors(block))
      reach(function_.edges[edge].to, label_[block.index()]);
  }
  for (BlockId block : touched)
    label_[block.index()] = {};
  std::ranges::sort(joins);
  return joins;
}

} // namespace ptxrewrite::ir
