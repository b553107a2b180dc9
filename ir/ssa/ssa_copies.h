// Inserts the copies that leaving SSA form requires. Private to ir/ssa*.cpp.
#pragma once

#include "ir/core/function.h"
#include "ir/ssa/ssa_classes.h"

namespace ptxrewrite::ir {

// `destination = source` as an instruction that is not linked into a block yet.
InstructionId make_copy(Function& function, ValueId destination, ValueId source);

// Gives every guarded definition an old value of its own kind whose live range ends there, copying old values that are
// still live after it. Returns true if anything changed.
bool separate_old_values(Function& function, const LiveRanges& ranges);

// Implements block arguments as copies between registers: before the terminator if no other edge is affected, at the
// start of a block with one predecessor, otherwise in a new block on the edge. `classes` and `ranges` describe the
// function before the call.
void insert_edge_copies(Function& function, const LiveRanges& ranges, const RegisterClasses& classes);

} // namespace ptxrewrite::ir
