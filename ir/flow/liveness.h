// Values that are live into and out of each block, in both states of a function. A guarded definition does not kill. In
// SSA form a block parameter is live into no block, and an edge argument is used at the end of its source block.
#pragma once

#include "ir/flow/cfg.h"

#include <vector>

namespace ptxrewrite::ir {

class Liveness {
public:
  // `only`: restricts the values, by index; nullptr: all. Takes time proportional to the size of the result.
  Liveness(const Function& function, const ControlFlow& flow, const std::vector<bool>* only = nullptr);

  const std::vector<ValueId>& live_in(BlockId block) const { return live_in_[block.index()]; }   // sorted
  const std::vector<ValueId>& live_out(BlockId block) const { return live_out_[block.index()]; } // sorted
  bool is_live_in(BlockId block, ValueId value) const;
  bool is_live_out(BlockId block, ValueId value) const;

private:
  std::vector<std::vector<ValueId>> live_in_, live_out_;
};

} // namespace ptxrewrite::ir
