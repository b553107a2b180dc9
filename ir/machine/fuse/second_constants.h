// Cost of further constant operands: an instruction can name one operand that is not in a register (a literal, or
// before 9.0 a parameter); others are moved into registers first. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <span>

namespace ptxrewrite::ir {

// Number of operands that are not in a register; zero does not count, as it has its own register.
size_t constants_among(const LoweringContext& context, std::span<const Operand> operands);

// Adds the moves of such operands to their readers, once it is known which values are in registers.
void weigh_second_constants(LoweringContext& context);

} // namespace ptxrewrite::ir
