// Integer divisions by the same divisor share one reciprocal; a remainder beside its quotient reuses the quotient.
// Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Weighs 32-bit divisions and remainders anew, those whose divisor an earlier one has divided by as what is left to do.
void share_reciprocals(LoweringContext& context);

} // namespace ptxrewrite::ir
