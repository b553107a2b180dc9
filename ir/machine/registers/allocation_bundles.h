// Groups of values that are allocated together: those that share a register and those in consecutive registers. Private
// to ir/machine/registers/allocation*.cpp.
#pragma once

#include "ir/machine/registers/allocation.h"

#include <vector>

namespace ptxrewrite::ir {

struct Bundle {
  struct Member {
    ValueId value;
    uint32_t offset; // of its first register from the bundle's first
  };
  std::vector<Member> members;
  std::vector<std::vector<LiveRange>> lanes; // per register of the bundle: live ranges during which it is in use
  uint32_t alignment = 1;                    // the number of the register at offset `phase` is a multiple of this
  uint32_t phase = 0;
  bool predicates = false;
};

class Bundles {
public:
  Bundles(const Function& function, const MachineValues& values, const AllocationOptions& options);

  // Only roots have members.
  const std::vector<Bundle>& bundles() const { return bundles_; }
  // Values of one name that are live at the same time; filled only if names are kept.
  const std::vector<std::pair<ValueId, ValueId>>& clashes() const { return clashes_; }

private:
  uint32_t bundle_of(ValueId value) const { return bundle_of_[value.index()]; }
  uint32_t offset_of(ValueId value) const { return offset_[value.index()]; }
  // Places `b` `distance` registers after `a`; returns false if this is impossible.
  bool join(ValueId a, ValueId b, int distance, uint32_t longest);
  // Requires that the number of the value's register is a multiple of `alignment`.
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
