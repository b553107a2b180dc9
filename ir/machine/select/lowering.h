// What an assembler makes of each PTX instruction: how many machine instructions, on which unit. PTX counts are not
// machine counts: parameters fold into operands, addresses into multiply-adds, divisions expand.
//
//   Lowering lowering = lower(function, 80);            // sm_80
//   lowering.cost(id).weight * executions of id         // dynamic machine instructions
//   lowering.static_instructions()                      // an estimate of the size of the code
//
// Works on both states of a function, on every kind of instruction of the hardware forms too. In SSA form the weights
// are sharper: as read, a register that is written more than once hides what its uses could have been fused with.
//
// weights.def says what an instruction costs alone, the rows of fuse.def what it costs among the
// others. An instruction that is fused with its user is free: the pair is counted at the user.
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
  // Of any instruction of the function; 0 for those that are unreachable, dead or no real instructions.
  const InstructionCost& cost(InstructionId id) const { return costs_[id.index()]; }

  // Beside the instruction stand others that no PTX says: values wait in local memory.
  void add_beside(InstructionId id, uint16_t instructions) { costs_[id.index()].weight += instructions; }

  // Registers of 32 bits that the value occupies while it is live: none where it is an operand in another place, a part
  // of its reader's work, or on the uniform datapath. Predicates have none.
  uint32_t register_units(ValueId value) const { return register_units_[value.index()]; }

  // Does the instruction serve one that has an effect? Assemblers drop the others.
  bool needed(InstructionId id) const { return needed_[id.index()]; }
  // Do its readers do its work, so that they read its operands instead of its result?
  bool absorbed(InstructionId id) const { return absorbed_[id.index()]; }
  // The value that readers of `value` read instead, adding a constant in their addresses; invalid for most values.
  ValueId without_constant(ValueId value) const { return without_constant_[value.index()]; }

  // Issued by every warp at the entry, whatever the body does: the stack pointer's initial value.
  uint32_t prologue() const { return prologue_; }
  // The same on the uniform datapath: the descriptor of global memory, where shared memory begins.
  uint32_t prologue_uniform() const { return prologue_uniform_; }
  // Of internal subroutines that the assembler appends: slow paths of division and square root. Dynamic counts take the
  // fast paths, which the weights hold.
  uint32_t subroutine_instructions() const { return subroutines_; }
  // Of the copies that the assembler makes of small counted loops. Known in SSA form only; dynamic counts hold each
  // trip's counter and branch, which copies would share.
  uint32_t unrolled_instructions() const { return unrolled_; }
  // How many copies of a block stand one after the other in its largest unrolled loop; 1 for most.
  uint32_t copies_of(BlockId block) const {
    auto copies = copies_.find(block);
    return copies == copies_.end() ? 1 : copies->second;
  }
  // All there is in the code: prologue, body on both datapaths, subroutines, copies of loops.
  uint32_t static_instructions() const;
  uint32_t static_uniform_instructions() const;

private:
  friend class Lowerer;
  std::vector<InstructionCost> costs_;
  std::vector<uint8_t> register_units_;
  std::vector<bool> needed_, absorbed_;
  std::vector<ValueId> without_constant_;
  uint32_t prologue_ = 0;
  uint32_t prologue_uniform_ = 0;
  uint32_t unrolled_ = 0;
  std::map<BlockId, uint32_t> copies_;
  uint32_t subroutines_ = 0; // modulo 2^32 while it is summed up
};

// For compute capability 80, 90 ... For those before 7.0, the rules of 7.0 without what came later; for 1.x, what
// first_generation.h says.
Lowering lower(const Function& function, uint32_t compute_capability, LoweringTrace* trace = nullptr);

// Without what assemblers do first (fold.h, tidy.h): registers, and what they are for, are those of the text.
Lowering lower_as_written(const Function& function, uint32_t compute_capability, LoweringTrace* trace = nullptr);

} // namespace ptxrewrite::ir
