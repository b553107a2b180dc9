// Converts the blocks of the text to those of the machine code, as an assembler forms them before it numbers regions or
// other entities by block.
//
//   * Short code that a branch skips is predicated, in one block with the code before and after it (where
//     ir/machine/select/lowering.h decides so: the branch has weight 0).
//   * A block that contains only a jump is removed: its predecessors continue at its target.
//   * A block and its only successor are merged if the successor has no other predecessor.
//   * A division, reciprocal or root with a slow path ends a block; the call of the slow path is a block of its own.
#pragma once

#include "ir/machine/registers/warp_liveness.h"

namespace ptxrewrite::ir {

// A predicated definition keeps the old value only of registers that are live in lanes which skip it.
RegisterProgram machine_blocks(const Function& function, const RegisterProgram& program, uint32_t compute_capability);

} // namespace ptxrewrite::ir
