// Which 32-bit integer work ptxas gives to the uniform datapath, from compute capability 7.5 on to 8.9.
//
// Work whose operands are the same in all lanes is done there if everybody who reads its result can: another such
// instruction, or one on the lanes that reads one uniform register and nothing from the instruction word or a constant
// bank, which take the same place. Addresses in 64 bits, what is stored and what merges with other values need it in a
// register of the lanes; so does work on a constant that stands in such a register anyway. The datapath reads no
// constant bank: what it needs from there is loaded.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

// By InstructionId. Of `weigh_constants` only what its rules say, not what it counts, is asked.
std::vector<bool> on_uniform_datapath(const LoweringContext& context, const UniformValues& uniform);

// A minimum or maximum, as one instruction or as a choice that has taken the compare over.
bool is_extreme(const LoweringContext& context, InstructionId id);

// Counts the loads of what these instructions read from constant banks, each once on a way through the kernel.
void weigh_uniform_loads(LoweringContext& context);

} // namespace ptxrewrite::ir
