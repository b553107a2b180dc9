// Operands as the ISA table wants to see them.
#pragma once

#include "ir/function.h"

#include <vector>

namespace ptxrewrite::ir {

// `ld.global.u32 {%r1}, [%rd1];`: where ptxas takes one register in braces for the register itself, so does the table.
void unwrap_single_vectors(const Form& form, std::span<OperandSummary> operands);

// Summaries of the operands of one instruction at a time. What `of` returns is valid until the next call. Old values
// are left out.
class OperandSummaries {
public:
  std::span<const OperandSummary> of(const Function& function, InstructionId instruction);

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
