// Helpers for passes that rewrite addresses: the address operands that may be replaced, the literal part of a sum, and
// an estimate of how often an instruction runs.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/function.h"
#include "ir/flow/loops.h"
#include "transforms/manager/analyses.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::transforms {

// A sum without its literal, and the literal, interpreted as signed.
struct SplitConstant {
  ir::ExpressionId symbolic;
  int64_t literal = 0;
};
SplitConstant split_constant(ir::ExpressionPool& pool, ir::ExpressionId sum);

// Can the literal be the immediate of an address in all SASS loads and stores? They have 24 bits, signed.
constexpr bool is_address_immediate(int64_t literal) {
  return literal >= -(int64_t(1) << 23) && literal < int64_t(1) << 23;
}

// Estimated number of executions of a block: 10 for each enclosing loop, at most 10^6.
double execution_weight(const ir::LoopForest& loops, ir::BlockId block);

// Returns the index of the address operand whose base and offset may be replaced by a register, which plain loads,
// stores and atomics have; otherwise nothing.
std::optional<size_t> rewritable_address(const ir::Function& function, ir::InstructionId instruction);

// An access whose address may be replaced.
class AddressedAccess {
public:
  AddressedAccess(ir::InstructionId id, size_t place, ir::ValueId value)
      : instruction(id), address(place), base(value) {}

  ir::InstructionId instruction;
  size_t address; // index of the operand
  ir::ValueId base;
  // Of the whole address, found when it is first asked for.
  const ir::LinearForm& form(const ir::LinearForms& forms) const {
    if (!form_) form_ = &forms.address_form(instruction, address);
    return *form_;
  }

private:
  mutable const ir::LinearForm* form_ = nullptr;
};

// All of a function, in reverse post-order of its blocks: an analysis that candidates share.
struct AddressedAccesses {
  AddressedAccesses(const ir::Function& function, AnalysisCache& analyses);

  std::vector<AddressedAccess> list;
};

} // namespace ptxrewrite::transforms
