// Values that are allocated together: those that share a register and those that stand in neighbouring ones. Private to
// ir/analysis/allocation*.cpp.
#pragma once

#include "ir/machine/registers/allocation.h"

#include <vector>

namespace ptxrewrite::ir {

struct Bundle {
  struct Member {
    ValueId value;
    uint32_t offset; // of its first register in the bundle
  };
  std::vector<Member> members;
  std::vector<std::vector<LiveRange>> lanes; // per register of the bundle: when it is taken
  uint32_t alignment = 1;                    // the register at `phase` has a number that this divides
  uint32_t phase = 0;
  bool predicates = false;
};

class Bundles {
public:
  Bundles(const Function& function, const MachineValues& values, const AllocationOptions& options);

  // Roots only; others have no members.
  const std::vector<Bundle>& bundles() const { return bundles_; }
  // Values of one name that are live at the same time; only where names are kept.
  const std::vector<std::pair<ValueId, ValueId>>& clashes() const { return clashes_; }

private:
  uint32_t bundle_of(ValueId value) const { return bundle_of_[value.index()]; }
  uint32_t offset_of(ValueId value) const { return offset_[value.index()]; }
  // Puts `b` at `distance` registers behind `a`; false if that cannot be.
  bool join(ValueId a, ValueId b, int distance, uint32_t longest);
  // Asks that the value's register is a multiple of `alignment`.
  bool align(ValueId value, uint32_t alignment);
  bool aligned_alike(const Bundle& a, const Bundle& b, int shift, uint32_t& alignment, uint32_t& phase) const;
  void join_names();
  void join_vectors();
  void join_vector(const VectorOperand& vector);
  void join_guarded();
  void keep_in_place(InstructionId id, ValueId old, ValueId destination);
  void join_edges(const std::vector<BlockId>& blocks);
  void join_halves();
  void join_copies();

  const Function& function_;
  const MachineValues& values_;
  std::vector<Bundle> bundles_;
  std::vector<uint32_t> bundle_of_, offset_;
  std::vector<std::pair<ValueId, ValueId>> clashes_;
};

} // namespace ptxrewrite::ir
