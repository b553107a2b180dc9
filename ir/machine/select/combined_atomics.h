// Warp-aggregated atomics: ptxas elects one lane to perform an atomic for all lanes that use the same address. Private
// to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

void weigh_combined_atomics(LoweringContext& context, const UniformValues& uniform);

} // namespace ptxrewrite::ir
