// Counts machine instructions: rows of weights.def first, then what folds away; see lowering.h.
#include "ir/machine/lowering.h"

#include "ir/machine/weights.h"

#include <bitset>

namespace ptxrewrite::ir {

class Lowerer {
public:
  Lowerer(const Function& function, uint32_t compute_capability, Lowering& result)
      : function_(function), capability_(compute_capability), result_(result) {}

  void run() {
    result_.costs_.assign(function_.instructions.size(), {});
    if (function_.is_entry) result_.prologue_ = 1;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        result_.costs_[id.index()] = alone(id);
  }

private:
  InstructionCost alone(InstructionId id) {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::real) return {};
    const Form& form = function_.form_of(id);
    FormWeight weight = weight_of(form, capability_);
    if (weight.subroutine != Subroutine::none && !appended_.test(static_cast<size_t>(weight.subroutine))) {
      appended_.set(static_cast<size_t>(weight.subroutine));
      result_.subroutines_ += instructions_of(weight.subroutine);
    }
    InstructionCost cost{weight.instructions, 0, weight.pipe};
    if (form.opcode == Opcode::ld && is_param(form.space) && function_.is_entry) cost.weight = 0;
    if (form.opcode == Opcode::mov && function_.operands_of(id)[1].is_constant()) cost.weight = 0;
    return cost;
  }

  const Function& function_;
  uint32_t capability_;
  Lowering& result_;
  std::bitset<static_cast<size_t>(Subroutine::count)> appended_;
};

std::string_view spelling(Pipe pipe) {
  switch (pipe) {
  case Pipe::issue:
    return "issue";
  case Pipe::integer:
    return "integer";
  case Pipe::fp32:
    return "fp32";
  case Pipe::fp64:
    return "fp64";
  case Pipe::special:
    return "special";
  case Pipe::memory:
    return "memory";
  case Pipe::matrix:
    return "matrix";
  case Pipe::control:
    return "control";
  case Pipe::uniform:
    return "uniform";
  }
  return {};
}

uint32_t Lowering::static_instructions() const {
  uint32_t sum = prologue_ + subroutines_;
  for (const InstructionCost& cost : costs_)
    sum += cost.weight + cost.uniform;
  return sum;
}

uint32_t Lowering::static_uniform_instructions() const {
  uint32_t sum = 0;
  for (const InstructionCost& cost : costs_)
    sum += cost.uniform;
  return sum;
}

Lowering lower(const Function& function, uint32_t compute_capability) {
  Lowering result;
  Lowerer(function, compute_capability, result).run();
  return result;
}

} // namespace ptxrewrite::ir
