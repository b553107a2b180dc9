// Live ranges of constants in registers: the readers that need another load of a constant. Private to ir/machine.
#pragma once

#include "ir/flow/loops.h"
#include "ir/machine/prepare/lowering_context.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

// ptxas 13.0 keeps it in the blocks that its block dominates, but not through loops of several blocks: in them and
// after them it moves the constant again.
class ConstantRanges {
public:
  explicit ConstantRanges(const LoweringContext& context);

  // True if a constant that block `from` has moved to a register is still there in block `to`.
  bool keeps(BlockId from, BlockId to) const;

private:
  class Ways;
  bool begins_anew(BlockId block) const;
  void find_interruptions(std::vector<bool> interrupted);

  const LoweringContext& context_;
  // By block: the first one, from it up the dominator tree, that may be reached from its immediate dominator by way of
  // the header of a loop of several blocks, its own included; invalid if there is none. Empty without such loops.
  std::vector<BlockId> interruption_;
};

// The blocks that another block of the list dominates for which holds(dominator, block) is true. What holds for a
// dominator must hold for those between it and the block: only the nearest one is asked.
template <class Holds>
std::vector<BlockId> blocks_behind(const DominatorTree& dominators, std::vector<BlockId> blocks, Holds&& holds) {
  std::ranges::sort(blocks, {}, [&](BlockId block) { return dominators.preorder(block); });
  std::vector<BlockId> behind, above; // above: the blocks that dominate the present one
  for (BlockId block : blocks) {
    while (!above.empty() && !dominators.dominates(above.back(), block))
      above.pop_back();
    if (!above.empty() && above.back() != block && holds(above.back(), block)) behind.push_back(block);
    above.push_back(block);
  }
  return behind;
}

// The same for blocks that need a constant in a register, with their first such readers.
template <class Holds>
std::set<BlockId> places_behind(const LoweringContext& context, const std::map<BlockId, InstructionId>& places,
                                Holds&& holds) {
  if (places.size() < 2) return {};
  std::vector<BlockId> blocks;
  for (const auto& [block, reader] : places)
    blocks.push_back(block);
  const std::vector<BlockId> behind = blocks_behind(context.dominators, std::move(blocks), holds);
  return {behind.begin(), behind.end()};
}

} // namespace ptxrewrite::ir
