// Which values are live into and out of each block. Works on both states of a function: a guarded definition does not
// kill. In SSA form a block parameter is live-in nowhere and an edge argument is a use at the end of its source block.
#pragma once

#include "ir/flow/cfg.h"

#include <vector>

namespace ptxrewrite::ir {

class Liveness {
public:
  // `only` limits the result to the values that it marks, by index; nullptr: all. The work is the size of the result.
  Liveness(const Function& function, const ControlFlow& flow, const std::vector<bool>* only = nullptr);

  const std::vector<ValueId>& live_in(BlockId block) const { return live_in_[block.index()]; }   // sorted
  const std::vector<ValueId>& live_out(BlockId block) const { return live_out_[block.index()]; } // sorted
  bool is_live_in(BlockId block, ValueId value) const;
  bool is_live_out(BlockId block, ValueId value) const;

private:
  std::vector<std::vector<ValueId>> live_in_, live_out_;
};

} // namespace ptxrewrite::ir
