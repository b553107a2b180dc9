// The integer instructions of 32 bits, and wide multiply-adds, that ptxas assigns to the uniform datapath, from compute
// capability 7.5 to 8.9.
//
// An instruction whose operands are the same in all lanes is assigned to it if every reader of its result can read it
// there: another such instruction, or a per-lane instruction that reads one uniform register and no immediate or
// constant-bank operand, which use the same operand slot. Stored values and values that merge with others require a
// per-lane register; so does work on a constant that is in such a register anyway. Addresses of 64 bits do as well: the
// result of a wide multiply-add is moved there, other work on them stays with the lanes. The datapath cannot read
// constant banks: operands from there are loaded.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// By InstructionId. Must run before weigh_constants; uses its rules but not its counts.
std::vector<bool> on_uniform_datapath(const LoweringContext& context, const UniformValues& uniform);

// True for a minimum or maximum, as one instruction or as a selp that has absorbed its compare.
bool is_extreme(const LoweringContext& context, InstructionId id);

// Adds the loads of constant-bank operands of these instructions, each once per path through the kernel.
void weigh_uniform_loads(LoweringContext& context);

} // namespace ptxrewrite::ir
