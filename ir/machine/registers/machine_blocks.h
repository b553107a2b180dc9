// The blocks of the machine code instead of those of the text: what an assembler makes of them before it numbers
// regions or anything else by blocks.
//
//   * Short code that a branch skips stands under a predicate, in one block with what is in front of it and behind it
//     (where ir/machine/select/lowering.h says so: the branch weighs nothing).
//   * A block of nothing but a jump is no block: those that go there go on to its target.
//   * A block and its only successor, which has no other predecessor, are one.
//   * A division, reciprocal or root with a slow path ends a block; the call of the slow path is one, which lanes skip.
#pragma once

#include "ir/machine/registers/warp_liveness.h"

namespace ptxrewrite::ir {

// Under a predicate, definitions keep something only of registers that lanes need which skip them.
RegisterProgram machine_blocks(const Function& function, const RegisterProgram& program, uint32_t compute_capability);

} // namespace ptxrewrite::ir
