// Launch predicates under which the bytes that a kernel reads through one pointer are disjoint from all bytes that it
// writes, derived from the ranges of its accesses.
//
// Predicates are in exact integers (launch/predicate.h). A range is valid only if it lies between 0 and 2^64 and is not
// empty, so an address that wraps, or a negative size, makes the predicate false.
#pragma once

#include "ir/analysis/linear/extent.h"
#include "transforms/common/attempt.h"
#include "transforms/memory/kernel_memory.h"
#include "transforms/memory/need.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::memory {

class Disjointness {
public:
  Disjointness(ir::AccessExtents& extents, const KernelMemory& memory, const ir::Function& function);

  // The pointer parameter on which the access is based, if the accessed bytes are known.
  std::optional<unsigned> pointer_of(const Access& access);
  // Does the kernel write through the pointer?
  bool is_written(unsigned pointer) const { return writes_.contains(pointer); }
  // Why no launch predicate can bound the kernel's writes; empty if one can.
  const std::string& refusal() const { return refusal_; }

  // The conditions under which all bytes read through the pointer are disjoint from all written bytes; nothing if no
  // launch predicate can establish that.
  std::optional<std::vector<Need>> read_only(unsigned pointer);

private:
  struct Bound {
    ir::ExactSum sum;
    std::vector<ir::InstructionId> accesses; // the accesses that it bounds
  };
  struct Range {
    std::vector<Bound> lows, highs; // the smallest low and the largest high bound the range
    ir::LaunchConditions conditions;
    ir::InstructionId instruction;
  };

  void add(const Access& access);
  void add(Range& range, const Access& access, const ir::ByteRange& bytes);
  void add_bound(std::vector<Bound>& list, Bound bound, bool is_high, ir::LaunchConditions& conditions);
  ir::ExactSum low_of(const Range& range);
  ir::ExactSum high_of(const Range& range);
  void need(std::vector<Need>& list, const std::string& statement, const std::string& predicate,
            ir::InstructionId instruction) const;
  void need_sound(std::vector<Need>& list, const Range& range, const std::string& name);

  ir::AccessExtents& extents_;
  const KernelMemory& memory_;
  const ir::Function& function_;
  std::map<ir::InstructionId, std::optional<ir::ByteRange>> bytes_;
  std::map<unsigned, Range> reads_, writes_; // by pointer
  std::set<unsigned> vague_reads_;           // pointers through which unknown bytes are read
  std::vector<Range> stray_writes_;          // without a pointer
  std::string refusal_;
};

} // namespace ptxrewrite::transforms::memory
