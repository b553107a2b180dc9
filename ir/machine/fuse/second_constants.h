// Cost of further constant operands: an instruction can name one operand that is in no register (a literal, or before
// 9.0 a parameter); others are moved into registers first. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

#include <span>

namespace ptxrewrite::ir {

// How many of the operands are in no register, unless something moves them there; zero is a register of its own.
size_t constants_among(const LoweringContext& context, std::span<const Operand> operands);

// At their readers, when it is known which values registers hold: what is moved into a register first.
void weigh_second_constants(LoweringContext& context);

} // namespace ptxrewrite::ir
