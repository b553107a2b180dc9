// What legal candidates cost: machine instructions of each PTX instruction, weighted by loop depth, and the choice
// among whole kernels.
#pragma once

#include "ir/flow/loops.h"
#include "ir/machine/select/lowering.h"
#include "transforms/common/address_forms.h"

namespace ptxrewrite::transforms::legal {

// Machine instructions times 10 for each loop around. Instructions that are made later have no entry and are free.
class InstructionCosts {
public:
  InstructionCosts(const ir::Function& function, const ir::LoopForest& loops)
      : function_(function), loops_(loops), lowering_(ir::lower(function, 80)), size_(function.instructions.size()) {}

  double of(ir::InstructionId id) const {
    if (id.index() >= size_) return 0;
    const ir::InstructionCost& cost = lowering_.cost(id);
    return (cost.weight + cost.uniform) * execution_weight(loops_, function_.instructions[id].block);
  }

  uint32_t static_instructions() const { return lowering_.static_instructions(); }

private:
  const ir::Function& function_;
  const ir::LoopForest& loops_;
  ir::Lowering lowering_;
  size_t size_;
};

} // namespace ptxrewrite::transforms::legal
