// Conditions as numbers: `set` writes -1 or 0, and front ends negate, combine and compare such numbers. Assemblers keep
// them in predicates. SSA form only. Private to ir/machine: lower() works on the result.
//
// Sections of a hardware form are not touched: the proposed machine executes them as written.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Turns numbers that only stand for conditions into predicates. Returns false if there are none. Ids stay valid.
bool make_predicates(Function& function);

} // namespace ptxrewrite::ir
