// Where R2D2's machine reads a linear register without an instruction of its own.
//
// Its operand collectors fetch a thread part, a block part and a coefficient for one operand and add them (r2d2-isca23
// §4.3), for any instruction and not only for addresses. The hardware form writes `r2d2.mov %r1, %lr0, %cr2, 8` for
// operands that are no addresses; where all readers of %r1 could have named the linear register, that is no
// instruction.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <cstdint>

namespace ptxrewrite::ir {

// A sum that an operand stands for.
struct LinearOperand {
  unsigned registers = 0; // that it is the sum of: thread part, block part, coefficient or offset
  bool adds = false;      // it is more than one register alone
};

// Could the reader name the sum in place of `value`? One register alone can stand wherever a register can. To add,
// instructions of the 32-bit arithmetic and logic units can, for one operand, if all that they read then is no more
// than a store reads in the paper's own code: four registers, as in `st [%lr1+%cr7], %f1`. Copies from register to
// register are none, since what they copy has to be somewhere.
bool reads_linear_operand(const Function& function, InstructionId reader, ValueId value, LinearOperand operand);

// Sums of linear registers that all their readers name themselves are no instructions.
void weigh_linear_operands(LoweringContext& context);

} // namespace ptxrewrite::ir
