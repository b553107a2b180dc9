// Copies that leaving SSA form needs, and where they go. Private to ir/ssa*.cpp.
#pragma once

#include "ir/core/function.h"
#include "ir/ssa/ssa_classes.h"

namespace ptxrewrite::ir {

// `destination = source` as an instruction that is placed nowhere yet.
InstructionId make_copy(Function& function, ValueId destination, ValueId source);

// Gives every guarded definition an old value of its own kind that dies there, by copying old values that live on.
// Returns whether anything changed.
bool separate_old_values(Function& function, const LiveRanges& ranges);

// Carries out the block arguments as copies between registers: before the terminator where nobody else sees it, at the
// head of a block with one predecessor, else in a new block on the edge. `classes` and `ranges` describe the function
// before.
void insert_edge_copies(Function& function, const LiveRanges& ranges, const RegisterClasses& classes);

} // namespace ptxrewrite::ir
