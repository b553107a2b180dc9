// Estimates the machine instructions that an assembler generates for each PTX instruction, and their units. PTX counts
// are not machine counts: parameters fold into operands, addresses into multiply-adds, divisions expand.
//
//   Lowering lowering = lower(function, 80);            // sm_80
//   lowering.cost(id).weight * executions of id         // dynamic machine instructions
//   lowering.static_instructions()                      // an estimate of the size of the code
//
// Works on both states of a function, and on all instructions of the hardware forms. Weights are more precise in SSA
// form: as read, a register that is written more than once prevents fusions with its uses.
//
// expand.def has the cost of an instruction by itself, the rows of fuse.def its cost in context. An instruction that
// is fused with its user is free: the pair is counted at the user.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/figures/pipe.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

struct LoweringTrace; // lowering_trace.h

class Lowering {
public:
  // Cost of any instruction of the function; 0 for those that are unreachable, dead or not real instructions.
  const InstructionCost& cost(InstructionId id) const { return costs_[id.index()]; }

  // Those of cost(id).weight that do nothing: see double_spacing.h.
  uint16_t idle_instructions(InstructionId id) const {
    const auto found = idle_.find(id);
    return found == idle_.end() ? uint16_t{0} : found->second;
  }

  // Adds machine instructions at `id` that no PTX instruction corresponds to: spills to local memory.
  void add_beside(InstructionId id, uint16_t instructions) { costs_[id.index()].weight += instructions; }

  // Number of 32-bit registers that the value occupies while live: none if it is an operand from elsewhere, absorbed by
  // its reader, or on the uniform datapath. Predicates have none.
  uint32_t register_units(ValueId value) const { return register_units_[value.index()]; }

  // True if an instruction with an effect depends on it. Assemblers drop the others.
  bool needed(InstructionId id) const { return needed_[id.index()]; }
  // True if its readers absorb it: they read its operands instead of its result.
  bool absorbed(InstructionId id) const { return absorbed_[id.index()]; }
  // The value that readers of `value` read instead, adding a constant in their addresses; invalid for most values.
  ValueId without_constant(ValueId value) const { return without_constant_[value.index()]; }

  // True if its instructions have a predicate and no branch skips them.
  bool predicated(BlockId block) const { return predicated_[block.index()]; }

  // Machine instructions that every warp issues at the entry: initialising the stack pointer.
  uint32_t prologue() const { return prologue_; }
  // The same on the uniform datapath: the descriptor of global memory and the start of shared memory.
  uint32_t prologue_uniform() const { return prologue_uniform_; }
  // Size of the internal subroutines that the assembler appends: slow paths of division and square root. Dynamic counts
  // assume the fast paths, which the weights include.
  uint32_t subroutine_instructions() const { return subroutines_; }
  // Instructions added by unrolling small counted loops. Known in SSA form only; dynamic counts include the counter and
  // branch of each trip, which the copies would share.
  uint32_t unrolled_instructions() const { return unrolled_; }
  // Number of consecutive copies of a block in its largest unrolled loop; 1 for most.
  uint32_t copies_of(BlockId block) const {
    auto copies = copies_.find(block);
    return copies == copies_.end() ? 1 : copies->second;
  }
  // Size of the whole code: prologue, body on both datapaths, subroutines, copies of loops.
  uint32_t static_instructions() const;
  uint32_t static_uniform_instructions() const;

private:
  friend class Lowerer;
  std::vector<InstructionCost> costs_;
  std::vector<uint8_t> register_units_;
  std::vector<bool> needed_, absorbed_;
  std::vector<bool> predicated_; // by BlockId
  std::vector<ValueId> without_constant_;
  uint32_t prologue_ = 0;
  uint32_t prologue_uniform_ = 0;
  uint32_t unrolled_ = 0;
  std::map<BlockId, uint32_t> copies_;
  std::map<InstructionId, uint16_t> idle_;
  uint32_t subroutines_ = 0; // modulo 2^32 during summation
};

// For compute capability 80, 90 ... Capabilities below 7.0 use the rules of 7.0 without later features; 1.x as
// described in first_generation.h.
Lowering lower(const Function& function, uint32_t compute_capability, LoweringTrace* trace = nullptr);

// Without the assembler's preparation (fold.h, tidy.h): values and registers are those of the text.
Lowering lower_as_written(const Function& function, uint32_t compute_capability, LoweringTrace* trace = nullptr);

// That preparation alone: the function as an assembler selects instructions for it. SSA form; others stay as they are.
void prepare_for_lowering(Function& function, uint32_t compute_capability);

} // namespace ptxrewrite::ir
