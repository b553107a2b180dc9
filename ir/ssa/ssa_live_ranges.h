// Which values of an SSA-form function are alive at the same time, without an interference graph: dominance of the
// definitions and liveness at the later one decide. Private to ir/ssa*.cpp.
#pragma once

#include "ir/flow/dominators.h"
#include "ir/flow/liveness.h"

namespace ptxrewrite::ir {

class LiveRanges {
public:
  // Ranges are known for the values whose register is in question: block parameters, their arguments, guarded
  // definitions, old values, and values that share their name with another one. The rest is left out because the sum of
  // all live ranges may be large.
  explicit LiveRanges(const Function& function);

  const ControlFlow& flow() const { return flow_; }
  const Liveness& liveness() const { return liveness_; }
  bool is_defined(ValueId value) const { return places_[value.index()].preorder != UINT32_MAX; }
  // Order of definitions: by depth-first place of the block in the dominator tree, then by place in the block.
  bool before(ValueId a, ValueId b) const;
  // Is `value` still needed behind the definition of `other`, which it dominates?
  bool live_behind(ValueId value, ValueId other) const;
  bool interfere(ValueId a, ValueId b) const;
  // Are all values of a list, sorted by `before`, free of interference with one another? Linear: of the definitions
  // that dominate one, only the nearest has to be looked at, because an earlier one that lives this long would
  // interfere with the nearest too.
  bool compatible(std::span<const ValueId> sorted);

private:
  struct Place {
    BlockId block;
    uint32_t preorder = UINT32_MAX;
    uint32_t index = 0; // 0: block parameter; instructions count from 1
  };
  struct LastUse {
    BlockId block;
    uint32_t index;
  };
  bool dominates(ValueId a, ValueId b) const;

  ControlFlow flow_;
  DominatorTree dominators_;
  std::vector<bool> in_question_;
  Liveness liveness_;
  std::vector<Place> places_;
  std::vector<uint32_t> last_use_start_;
  std::vector<LastUse> last_uses_; // per value, sorted by block
  std::vector<ValueId> stack_;
};

} // namespace ptxrewrite::ir
