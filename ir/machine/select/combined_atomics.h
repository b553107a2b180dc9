// Lanes that do the same atomic operation to one place elect one of them, which does it for all. Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"
#include "ir/machine/prepare/uniform.h"

namespace ptxrewrite::ir {

void weigh_combined_atomics(LoweringContext& context, const UniformValues& uniform);

} // namespace ptxrewrite::ir
