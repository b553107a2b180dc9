// Live ranges of constants in registers: the readers that need another load of a constant. Private to ir/machine.
#pragma once

#include "ir/flow/loops.h"
#include "ir/machine/prepare/lowering_context.h"

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
  bool begins_anew(BlockId block) const;
  std::vector<bool> reached(BlockId start, BlockId without, bool backwards) const;

  const LoweringContext& context_;
  LoopForest loops_;
  std::vector<LoopId> branching_; // loops of several blocks
};

} // namespace ptxrewrite::ir
