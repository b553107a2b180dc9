// Constant folding as an assembler does it before instruction selection: results that are constant in every launch,
// identities (x + 0, x * 1), branches with a constant condition, and unreachable code. This is why a version of a
// kernel for one block shape is shorter than the kernel. Matches ptxas 13.0. Private to ir/machine.
#pragma once

#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::ir {

// The function with that done, in SSA form, or nothing where there is nothing to do. Values, blocks and instructions
// keep their ids: a result that is a number is moved into its register by the instruction that computed it, or by a new
// one where it was a block's parameter; what is not done any more is in no block, and its readers read what it was.
std::optional<Function> folded(const Function& function);

} // namespace ptxrewrite::ir
