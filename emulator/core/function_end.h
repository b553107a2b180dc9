// What is not only of one instruction: a function returns at `ret`, and where control comes to its end.
#pragma once

#include "emulator/core/micro_op.h"

namespace ptxrewrite::emulator {

// The lanes of warp.mask return to where the function was called; those of an entry end.
const MicroOp* return_from_call(Warp& warp, const MicroOp& op);
// Where control comes to when a body ends without `ret`. It belongs to no instruction.
bool is_end_of_function(const MicroOp& op);

} // namespace ptxrewrite::emulator
