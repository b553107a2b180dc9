// Which instructions of a block must stay in order: the graph that reorders of a block have to respect. SSA form.
//
// An instruction stays behind those whose results it reads (data). It stays in order with others, too (order):
//   * accesses of memory, unless both read, their state spaces are apart, or they are in the thread's own memory and
//     do not overlap; volatile and atomic accesses with all accesses;
//   * instructions that pass on the carry flag, and convergent ones, among themselves;
//   * everything with barriers, fences, calls, control transfers, asynchronous copies, reads of clocks, and with lines
//     of the text that are no instructions;
//   * readers of a value with the instruction that writes its register again: one that keeps the value where its guard
//     is false, or that computes what a successor's parameter of the value's place takes. Turned round, they would cost
//     a copy.
#pragma once

#include "ir/flow/def_use.h"

#include <cstdint>
#include <vector>

namespace ptxrewrite::ir {

struct Dependence {
  uint32_t node = 0; // the other end: a place among BlockDependences::instructions
  bool data = false;
};

struct BlockDependences {
  std::vector<InstructionId> instructions;           // in the order of the block
  std::vector<std::vector<Dependence>> predecessors; // by place; each before it in the block, once
  std::vector<std::vector<Dependence>> successors;
};

// Of the function as it stands when this is made.
class Dependences {
public:
  explicit Dependences(const Function& function);
  BlockDependences of(BlockId block) const;

private:
  const Function& function_;
  DefUse def_use_;
  std::vector<uint32_t> place_; // in its block, by InstructionId
};

// Does what it reads come from far away: global memory, or what may be global memory?
bool is_long_latency(const Form& form);

} // namespace ptxrewrite::ir
