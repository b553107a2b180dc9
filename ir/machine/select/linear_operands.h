// Operands for which R2D2's machine reads a linear register without a separate instruction.
//
// Its operand collectors fetch a thread part, a block part and a coefficient for one operand and add them (r2d2-isca23
// §4.3), for any instruction and not only for addresses. The hardware form writes `r2d2.mov %r1, %lr0, %cr2, 8` for
// operands that are not addresses; it costs no instruction if all readers of %r1 could name the linear register
// themselves.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <cstdint>

namespace ptxrewrite::ir {

// The sum that replaces an operand.
struct LinearOperand {
  unsigned registers = 0; // number of summands: thread part, block part, coefficient or offset
  bool adds = false;      // false: a single register
};

// True if the reader could name the sum in place of `value`. A single register is allowed wherever a register is. An
// addition is supported by instructions of the 32-bit arithmetic and logic units, for one operand, if the total number
// of registers read is at most that of a store in the paper's own code: four, as in `st [%lr1+%cr7], %f1`. Register
// copies do not support it, because their result needs a register.
bool reads_linear_operand(const Function& function, InstructionId reader, ValueId value, LinearOperand operand);

// Sets the cost of sums of linear registers to 0 if all readers can name them.
void weigh_linear_operands(LoweringContext& context);

} // namespace ptxrewrite::ir
