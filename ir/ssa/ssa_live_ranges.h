// Interference of the values of an SSA-form function, without an interference graph: two values interfere if one
// definition dominates the other and the value is live there. Private to ir/ssa*.cpp.
#pragma once

#include "ir/flow/dominators.h"
#include "ir/flow/liveness.h"

namespace ptxrewrite::ir {

class LiveRanges {
public:
  // Computes ranges only of values whose register has to be chosen: block parameters, their arguments, guarded
  // definitions, old values, and values that share their name with another. The sum of all live ranges may be too
  // large.
  explicit LiveRanges(const Function& function);

  const ControlFlow& flow() const { return flow_; }
  const Liveness& liveness() const { return liveness_; }
  bool is_defined(ValueId value) const { return places_[value.index()].preorder != UINT32_MAX; }
  // Order of definitions: by the block's preorder number in the dominator tree, then by position in the block.
  bool before(ValueId a, ValueId b) const;
  // True if `value` is live after the definition of `other`, which it dominates.
  bool live_behind(ValueId value, ValueId other) const;
  bool interfere(ValueId a, ValueId b) const;
  // True if no two values of a list, sorted by `before`, interfere. Linear: among the definitions that dominate a
  // value only the nearest is checked, because an earlier one that is still live would interfere with the nearest,
  // too.
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
  std::vector<LastUse> last_uses_; // per value in question, sorted by block
  std::vector<ValueId> stack_;
};

} // namespace ptxrewrite::ir
