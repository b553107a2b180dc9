#include "ir/machine/registers/live_loops.h"

#include <algorithm>
#include <limits>

namespace ptxrewrite::ir {

LiveLoops::LiveLoops(const Function& function, const ControlFlow& flow)
    : forest_(function, flow, DominatorTree(function, flow)), extents_(forest_.loops().size()) {
  struct Places {
    uint32_t first = std::numeric_limits<uint32_t>::max(), last = 0, count = 0;
  };
  std::vector<Places> places(extents_.size());
  for (uint32_t place = 0; place < function.layout.size(); ++place)
    if (const LoopId loop = forest_.innermost(function.layout[place])) {
      Places& at = places[loop.index()];
      at = {std::min(at.first, place), std::max(at.last, place), at.count + 1};
    }
  // Inner loops first: each is part of its parent.
  std::vector<LoopId> inner_first;
  for (LoopId loop : forest_.loops().ids())
    inner_first.push_back(loop);
  std::ranges::stable_sort(inner_first, std::greater(), [&](LoopId loop) { return forest_.loops()[loop].depth; });
  for (LoopId loop : inner_first) {
    const Places& at = places[loop.index()];
    if (const LoopId parent = forest_.loops()[loop].parent) {
      Places& outer = places[parent.index()];
      outer = {std::min(outer.first, at.first), std::max(outer.last, at.last), outer.count + at.count};
    }
    if (at.count > 0 && at.last - at.first + 1 == at.count)
      extents_[loop.index()] = {function.layout[at.first], function.layout[at.last]};
  }
}

LoopId LiveLoops::around(BlockId block, BlockId definition) const {
  LoopId found;
  for (LoopId loop = forest_.innermost(block); loop && !forest_.contains(loop, definition);
       loop = forest_.loops()[loop].parent)
    if (extents_[loop.index()].first) found = loop;
  return found;
}

} // namespace ptxrewrite::ir
