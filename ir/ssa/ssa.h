// Into SSA form and out of it.
#pragma once

#include "ir/core/function.h"
#include "support/result.h"

namespace ptxrewrite::ir {

// Turns a function as read into SSA form with pruned block parameters. Guards stay on their instructions; the value a
// guarded definition leaves in lanes where the guard is false becomes an explicit old-value operand (instruction.h).
// Scopes and register declarations are dropped, local variables and labels get unique names. Unreachable blocks are
// kept out of the layout. Fails, leaving the function as it was, when the body holds something that has no SSA reading
// (the message says what and where); such a function passes through every transform untouched. A kernel's affine
// stream comes along.
Status construct_ssa(Function& function);

// Back to registers, coalescing so well that construct + destruct changes nothing that ptxas can see: values that came
// from one register share one again unless they interfere. Declares the registers, inserts copies only where needed
// (parallel copies are sequentialised; a critical edge is split). Names are taken from the hints, made unique.
void destruct_ssa(Function& function);

} // namespace ptxrewrite::ir
