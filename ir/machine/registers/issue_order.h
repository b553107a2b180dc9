// The order in which ptxas issues the instructions of a block if registers are free, and loads that copies of loops
// issue ahead.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/select/lowering.h"

#include <span>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

// Loads and the instructions that they depend on are first, as far as stores to the same memory and barriers permit, so
// that their latencies overlap. SSA form.
class IssueOrder {
public:
  // `passes_stores`: loads are issued before stores to other places.
  IssueOrder(const Function& function, const Lowering& lowering, bool passes_stores);
  std::vector<InstructionId> of(BlockId block);

private:
  struct Place {
    size_t released = 0; // 1 + position of the store behind which it is issued; 0: at the start
    bool early = false;
  };

  bool is_real(InstructionId id) const { return function_.instructions[id].kind == InstructionKind::real; }
  bool is_fence(InstructionId id) const;
  bool is_indexed_constant(InstructionId id) const;
  void flush();
  void append(const std::vector<Place>& places);

  const Function& function_;
  const Lowering& lowering_;
  const bool passes_stores_;
  std::vector<uint32_t> definition_; // by ValueId: position in the region
  std::vector<InstructionId> region_, order_;
};

// Number of registers for the results of loads that further copies of straight code issue early, too: those of memory
// to which it does not write, and of read-only memory; if loads pass stores, also those with the base of all stores.
// Loads of shared memory stay behind barriers; they and those of constant memory take little time, so that few are
// issued ahead. `near_words`: of results of shared memory, at most.
uint32_t loaded_ahead(const Function& function, const Lowering& lowering, std::span<const BlockId> blocks,
                      uint32_t near_words, bool passes_stores);

} // namespace ptxrewrite::ir
