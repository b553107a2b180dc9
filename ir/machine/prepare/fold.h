// What an assembler computes itself before it chooses instructions: results that are numbers whatever the launch, work
// that leaves a number as it is, branches that always go the same way, and what no run comes to. So a version of a
// kernel for one shape of block is shorter than the kernel. Found out about ptxas 13.0; private to ir/machine.
#pragma once

#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::ir {

// The function with that done, in SSA form, or nothing where there is nothing to do. Values, blocks and instructions
// keep their ids: a result that is a number is moved into its register by the instruction that computed it, or by a new
// one where it was a block's parameter; what is not done any more is in no block, and its readers read what it was.
std::optional<Function> folded(const Function& function);

} // namespace ptxrewrite::ir
