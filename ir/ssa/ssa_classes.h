// Assigns the values of an SSA-form function to shared registers for destruct_ssa. Private to ir/ssa*.cpp.
#pragma once

#include "ir/ssa/ssa_live_ranges.h"

namespace ptxrewrite::ir {

class RegisterClasses {
public:
  // Every guarded definition must be able to share a register with its old value (see separate_old_values).
  RegisterClasses(const Function& function, LiveRanges& ranges);

  // The value that represents all values of its register.
  ValueId representative(ValueId value) const { return representative_[value.index()]; }

private:
  void tie_old_values();
  void join_block_parameters();
  void join_whole_components();
  void join_one_by_one();
  void join_same_origin();
  void join_group(std::span<const ValueId> roots);
  void place_undefined();

  bool same_kind(ValueId a, ValueId b) const;
  ValueId find(ValueId value);
  // Joins two classes and returns true, unless two of their values interfere.
  bool try_join(ValueId a, ValueId b);
  void join(ValueId a, ValueId b, std::vector<ValueId> members);

  const Function& function_;
  LiveRanges& ranges_;
  std::vector<ValueId> parent_;
  std::vector<std::vector<ValueId>> members_; // by root, sorted by LiveRanges::before; empty for single values
  std::vector<ValueId> representative_;
  std::vector<std::pair<ValueId, ValueId>> ties_;
  struct Link {
    ValueId parameter, argument;
    EdgeId edge;
  };
  std::vector<Link> links_;
};

} // namespace ptxrewrite::ir
