// Converts operands to the form that the ISA table checks.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// Summarises the operands of one instruction at a time. The span that `of` returns is valid until the next call. Old
// values are omitted.
class OperandSummaries {
public:
  std::span<const OperandSummary> of(const Function& function, InstructionId instruction);
  // As above, for operands that are not yet part of an instruction.
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
