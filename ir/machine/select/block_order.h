// The order in which an assembler lays out blocks: jumps to jumps go to the last target, and a block is placed after
// one that ends by jumping to it. Front ends that write two jumps at the end of a block, or blocks in the order of
// their statements, need no more jumps than others. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <span>
#include <vector>

namespace ptxrewrite::ir {

class BlockOrder {
public:
  explicit BlockOrder(const LoweringContext& context);

  // The block that a jump to `block` ends in: the first one that holds more than a jump.
  BlockId destination(BlockId block) const { return destination_[block.index()]; }
  bool only_jumps(BlockId block) const { return destination(block) != block; }
  // The destinations of the block's edges, in the order of the edges.
  std::span<const BlockId> successors(BlockId block) const {
    return std::span(targets_).subspan(first_target_[block.index()], function_.successors(block).size());
  }

  // `next`: the required following block, by BlockId; invalid for most.
  void arrange(const std::vector<BlockId>& next);

  // After arrange():
  // True if `block` is laid out directly after `before`.
  bool is_behind(BlockId before, BlockId block) const { return behind_[before.index()] == block; }
  // True if the block is reached by falling through.
  bool is_fallen_into(BlockId block) const { return fallen_into_[block.index()]; }

private:
  BlockId choose(BlockId block, const std::vector<BlockId>& next) const;
  bool is_ready(BlockId block) const;

  const LoweringContext& context_;
  const Function& function_;
  std::vector<BlockId> destination_;               // by BlockId
  std::vector<uint32_t> first_target_;             // by BlockId
  std::vector<BlockId> targets_;                   // those of a block one behind the other
  std::vector<BlockId> behind_, text_next_;        // by BlockId; invalid: none
  std::vector<std::vector<BlockId>> predecessors_; // by BlockId; of destinations
  std::vector<bool> placed_, fallen_into_;         // by BlockId
  std::vector<BlockId> blocks_;                    // that hold more than a jump, in text order
};

} // namespace ptxrewrite::ir
