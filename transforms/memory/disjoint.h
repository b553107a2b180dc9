// Are the bytes that a kernel reads through one pointer apart from all bytes that it writes? As launch predicates over
// the ranges of its accesses.
//
// Predicates are in exact integers (launch/predicate.h). A range counts only if it lies between 0 and 2^64 and is not
// empty, so an address that wraps, or a size that is negative, fails the predicate.
#pragma once

#include "ir/analysis/linear/extent.h"
#include "transforms/common/attempt.h"
#include "transforms/memory/kernel_memory.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::memory {

// What a rewrite needs of a launch, for the ledger.
struct Need {
  std::string statement;
  std::string predicate;
  ir::InstructionId instruction; // for its place in the text
};

class Disjointness {
public:
  Disjointness(ir::AccessExtents& extents, const KernelMemory& memory, const ir::Function& function);

  // The pointer parameter that the access counts from, if its bytes are known.
  std::optional<unsigned> pointer_of(const Access& access);
  // Is the pointer written through?
  bool is_written(unsigned pointer) const { return writes_.contains(pointer); }
  bool writes_nothing() const { return memory_.unknown_writes.empty() && writes_.empty() && stray_writes_.empty(); }
  // Why no launch could tell what the kernel writes; empty: one could.
  const std::string& refusal() const { return refusal_; }

  // What keeps all that is read through the pointer apart from all that is written; nothing where no launch can tell.
  std::optional<std::vector<Need>> read_only(unsigned pointer);

private:
  struct Bound {
    ir::ExactSum sum;
    std::vector<ir::InstructionId> accesses; // that it bounds
  };
  struct Range {
    std::vector<Bound> lows, highs; // of which the least and the greatest count
    ir::LaunchConditions conditions;
    ir::InstructionId instruction;
  };

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
  std::set<unsigned> vague_reads_;           // pointers through which something unknown is read
  std::vector<Range> stray_writes_;          // without a pointer
  std::string refusal_;
};

} // namespace ptxrewrite::transforms::memory
