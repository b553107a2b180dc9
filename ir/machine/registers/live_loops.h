// Loops as ranges of program points: a value that is live into a block of a loop, and not defined there, is live in the
// whole loop (Boissinot et al.: fast liveness checking for SSA-form programs). Live ranges of values that cross nested
// loops are then found without a visit to each of their blocks.
#pragma once

#include "ir/flow/loops.h"

#include <vector>

namespace ptxrewrite::ir {

class LiveLoops {
public:
  // Of a loop: from the start of its first block to the end of its last one.
  struct Extent {
    BlockId first, last;
  };

  LiveLoops(const Function& function, const ControlFlow& flow);

  // The outermost loop around the block that does not contain the definition, of those whose blocks follow each other
  // in the layout; invalid: none.
  LoopId around(BlockId block, BlockId definition) const;
  Extent extent(LoopId loop) const { return extents_[loop.index()]; }
  BlockId header(LoopId loop) const { return forest_.loops()[loop].header; }
  bool contains(LoopId loop, BlockId block) const { return forest_.contains(loop, block); }
  size_t count() const { return forest_.loops().size(); }

private:
  LoopForest forest_;
  std::vector<Extent> extents_; // by LoopId; invalid blocks if they do not follow each other
};

} // namespace ptxrewrite::ir
