// Operands as the ISA table wants to see them.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// Summaries of the operands of one instruction at a time. What `of` returns is valid until the next call. Old values
// are left out.
class OperandSummaries {
public:
  std::span<const OperandSummary> of(const Function& function, InstructionId instruction);
  // The same for operands that are no instruction yet.
  std::span<const OperandSummary> of(const Function& function, const Form& form, std::span<const Operand> operands);

private:
  std::span<OperandSummary> range(size_t begin, size_t end);
  OperandSummary one(size_t index);
  OperandSummary of_register(const Operand& operand) const;
  OperandSummary of_address(size_t index);

  const Function* function_ = nullptr;
  std::span<const Operand> operands_;
  std::vector<OperandSummary> pool_;
  size_t used_ = 0;
};

} // namespace ptxrewrite::ir
