// Every block that the branch reaches gets a label: the successor through which it is reached. A block reached with two
// different labels is a join and becomes a label of its own. Blocks are processed in reverse post-order until labels
// are stable; a label changes at most twice, from none to a label and from that to the block itself.
#include "ir/flow/divergent_joins.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::ir {

DivergentJoins::DivergentJoins(const Function& function, const ControlFlow& flow)
    : function_(function), flow_(flow), post_dominators_(function, flow), label_(function.blocks.size()) {}

std::vector<BlockId> DivergentJoins::of(BlockId branch) {
  const BlockId end = post_dominators_.immediate_post_dominator(branch);
  std::vector<BlockId> joins, touched;
  std::set<std::pair<uint32_t, BlockId>> work; // ordered by position in the reverse post-order
  auto reach = [&](BlockId block, BlockId label) {
    if (block == branch || !flow_.reachable(block)) return;
    BlockId& known = label_[block.index()];
    if (known == label) return;
    // A successor of the branch starts with itself as label but is not a join yet.
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
    // Two edges into the same block may pass different arguments.
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
