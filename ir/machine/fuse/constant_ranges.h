// Live ranges of constants in registers: after which readers a constant is loaded again. Private to ir/machine.
#pragma once

#include "ir/flow/loops.h"
#include "ir/machine/prepare/lowering_context.h"

#include <vector>

namespace ptxrewrite::ir {

// ptxas 13.0 keeps it for the blocks that its block dominates, but not through loops of several blocks: in them and
// behind them it moves the constant anew.
class ConstantRanges {
public:
  explicit ConstantRanges(const LoweringContext& context);

  // What one block has moved into a register, another finds there.
  bool keeps(BlockId from, BlockId to) const;

private:
  bool begins_anew(BlockId block) const;
  std::vector<bool> reached(BlockId start, BlockId without, bool backwards) const;

  const LoweringContext& context_;
  LoopForest loops_;
  std::vector<LoopId> branching_; // loops of several blocks
};

} // namespace ptxrewrite::ir
