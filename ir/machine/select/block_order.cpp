#include "ir/machine/select/block_order.h"

#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// The block to which a block without other instructions jumps; the block itself if it has any.
BlockId jump_of(const Function& function, BlockId block) {
  const std::span<const EdgeId> edges = function.successors(block);
  if (edges.size() != 1) return block;
  for (InstructionId id : function.instructions_in(block)) {
    const Instruction& instruction = function.instructions[id];
    if (instruction.kind != InstructionKind::real) continue;
    if (instruction.guard || !function.is_opcode(id, Opcode::bra)) return block;
  }
  return function.edges[edges[0]].to;
}

} // namespace

BlockOrder::BlockOrder(const LoweringContext& context)
    : context_(context), function_(context.function), destination_(function_.blocks.size()),
      first_target_(function_.blocks.size()), behind_(function_.blocks.size()), text_next_(function_.blocks.size()),
      predecessors_(function_.blocks.size()), placed_(function_.blocks.size()), fallen_into_(function_.blocks.size()) {
  constexpr int longest_chain = 16;
  for (BlockId block : function_.layout) {
    destination_[block.index()] = block;
    BlockId last = block;
    for (int step = 0; step <= longest_chain; ++step) {
      const BlockId to = jump_of(function_, last);
      if (to == last) {
        destination_[block.index()] = last; // else a circle of jumps
        break;
      }
      last = to;
    }
  }
  targets_.reserve(function_.edges.size());
  for (BlockId block : function_.layout) {
    first_target_[block.index()] = static_cast<uint32_t>(targets_.size());
    for (EdgeId edge : function_.successors(block))
      targets_.push_back(destination(function_.edges[edge].to));
  }
  for (BlockId block : function_.layout) {
    if (!context.flow.reachable(block) || only_jumps(block)) continue;
    if (!blocks_.empty()) text_next_[blocks_.back().index()] = block;
    blocks_.push_back(block);
    for (BlockId to : successors(block))
      predecessors_[to.index()].push_back(block);
  }
}

// All blocks that go to it stand already, but for those in a loop of which it is the first.
bool BlockOrder::is_ready(BlockId block) const {
  return std::ranges::all_of(predecessors_[block.index()], [&](BlockId before) {
    return placed_[before.index()] || context_.dominators.dominates(block, before);
  });
}

BlockId BlockOrder::choose(BlockId block, const std::vector<BlockId>& next) const {
  const auto is_free = [&](BlockId to) { return to && !placed_[to.index()]; };
  if (const BlockId forced = next[block.index()]) return is_free(forced) ? forced : BlockId();
  const std::span<const BlockId> targets = successors(block);
  const BlockId behind = text_next_[block.index()];
  if (is_free(behind) && std::ranges::find(targets, behind) != targets.end()) return behind;
  for (size_t i = targets.size(); i-- > 0;) // where the branch is not taken, first
    if (is_free(targets[i]) && is_ready(targets[i])) return targets[i];
  return {};
}

void BlockOrder::arrange(const std::vector<BlockId>& next) {
  for (BlockId first : blocks_)
    for (BlockId block = first; block && !placed_[block.index()];) {
      placed_[block.index()] = true;
      const BlockId chosen = choose(block, next);
      behind_[block.index()] = chosen;
      if (chosen) fallen_into_[chosen.index()] = true;
      block = chosen;
    }
}

} // namespace ptxrewrite::ir
