// What passes that rewrite addresses share: which address operands may be replaced, the literal of a sum, and how often
// an instruction is taken to run.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/function.h"
#include "ir/flow/loops.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ptxrewrite::transforms {

// The sum without its literal, and the literal, read as signed.
struct SplitConstant {
  ir::ExpressionId symbolic;
  int64_t literal = 0;
};
SplitConstant split_constant(ir::ExpressionPool& pool, ir::ExpressionId sum);

// 10 for each loop around the block, up to 10^6: how often an instruction runs, for choosing.
double execution_weight(const ir::LoopForest& loops, ir::BlockId block);

// Where an address operand's base and offset may be replaced by a register: plain loads, stores and atomics.
// The index of the address operand, or nothing.
std::optional<size_t> rewritable_address(const ir::Function& function, ir::InstructionId instruction);

} // namespace ptxrewrite::transforms
