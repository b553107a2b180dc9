// Constant folding as an assembler does it before instruction selection: results that are constant in every launch,
// identities (x + 0, x * 1), branches with a constant condition, and unreachable code. This is why a version of a
// kernel for one block shape is shorter than the kernel. Matches ptxas 13.0. Private to ir/machine.
#pragma once

#include "ir/core/function.h"
#include "ir/flow/cfg.h"
#include "ir/machine/prepare/value_flow.h"

namespace ptxrewrite::ir {

// Folds a function in SSA form; returns false if nothing changes. Values, blocks and instructions keep their ids: a
// constant result is moved into its register by the instruction that computed it, or by a new one if it was a block
// parameter; a removed instruction is in no block, and its readers read the value that it was equal to. `flow`: of the
// function, before and after.
bool fold(Function& function, ControlFlow& flow);

// `definitions`: the same.
bool fold(Function& function, ControlFlow& flow, DefinitionsBetweenSteps& definitions);

} // namespace ptxrewrite::ir
