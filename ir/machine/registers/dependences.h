// The dependence graph of a block, which every reordering of its instructions has to respect. SSA form.
//
// An instruction depends on those whose results it reads (data). Further pairs must stay in order, too (order):
//   * memory accesses, unless both are reads, their state spaces are disjoint, or they access the thread's own memory
//     without overlap; volatile and atomic accesses stay in order with all accesses;
//   * instructions that use the carry flag, and convergent ones, among themselves;
//   * barriers, fences, calls, control transfers, asynchronous copies, reads of clocks and statements that are not
//     instructions, with everything;
//   * readers of a value, with an instruction that overwrites its register: one that keeps the value where its guard
//     is false, or that computes the argument for a successor's parameter that the value belongs to. The reverse order
//     would cost a copy.
#pragma once

#include "ir/flow/def_use.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::ir {

struct Dependence {
  uint32_t node = 0; // the other end: an index into BlockDependences::instructions
  bool data = false;
};

struct BlockDependences {
  std::vector<InstructionId> instructions;           // in block order
  std::vector<std::vector<Dependence>> predecessors; // by index; instructions earlier in the block, each once
  std::vector<std::vector<Dependence>> successors;
};

// Describes the function at the time of construction.
class Dependences {
public:
  explicit Dependences(const Function& function);
  BlockDependences of(BlockId block) const;

private:
  const Function& function_;
  DefUse def_use_;
  std::vector<uint32_t> place_; // index in the block, by InstructionId
};

// True for reads with long latency: from global memory, or from addresses that may be in global memory.
bool is_long_latency(const Form& form);

} // namespace ptxrewrite::ir
