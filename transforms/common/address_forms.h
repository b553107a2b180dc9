// Helpers for passes that rewrite addresses: the address operands that may be replaced, the literal part of a sum, and
// an estimate of how often an instruction runs.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/function.h"
#include "ir/flow/loops.h"

#include <cstddef>
#include <cstdint>
#include <optional>

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

} // namespace ptxrewrite::transforms
