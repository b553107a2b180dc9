// The end of functions: used by `ret`, and where control reaches the end of a body.
#pragma once

#include "emulator/core/micro_op.h"

namespace ptxrewrite::emulator {

// The lanes of warp.mask return to their caller; lanes of an entry end.
const MicroOp* return_from_call(Warp& warp, const MicroOp& op);
// Is this the end of a body without `ret`? It belongs to no instruction.
bool is_end_of_function(const MicroOp& op);

} // namespace ptxrewrite::emulator
