// Emits the chosen pairs of a block as composite instructions.
#pragma once

#include "transforms/composite/composite_graph.h"

namespace ptxrewrite::transforms::composite {

struct RewriteCounts {
  uint32_t composites = 0;
  uint32_t slot_reads = 0; // operands that name %crf
  uint32_t expanded = 0;   // instructions written as several steps
};

RewriteCounts rewrite_block(ir::Function& function, ir::BlockId block, const BlockGraph& graph,
                            const PairChoice& choice);

} // namespace ptxrewrite::transforms::composite
