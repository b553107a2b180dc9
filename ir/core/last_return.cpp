#include "ir/core/last_return.h"

#include "ir/core/builder.h"

#include <vector>

namespace ptxrewrite::ir {

bool runs_off_the_end(const Function& function, BlockId block) {
  if (block != function.layout.back()) return false;
  const InstructionId end = function.terminator(block);
  return !end || function.instructions[end].guard;
}

void spell_last_return(Function& function) {
  BlockId last = function.layout.back();
  if (!runs_off_the_end(function, last)) return;
  const InstructionId end = function.terminator(last);
  if (end && function.form_of(end).effects.branch) { // nothing may follow a branch in its block
    const BlockId behind = function.add_block();
    function.place_block(behind);
    std::vector<EdgeId> edges(function.successors(last).begin(), function.successors(last).end());
    edges.push_back(function.add_edge(last, behind));
    function.set_successors(last, edges, true);
    last = behind;
  }
  Builder(function).at_end(last).emit("ret", {});
}

} // namespace ptxrewrite::ir
