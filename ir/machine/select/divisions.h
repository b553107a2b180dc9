// Integer divisions by the same divisor share one reciprocal; a remainder beside its quotient reuses the quotient.
// Private to ir/machine.
#pragma once

#include "ir/machine/prepare/lowering_context.h"

namespace ptxrewrite::ir {

// Reweighs 32-bit divisions and remainders; if an earlier one has the same divisor, only the remaining work counts.
void share_reciprocals(LoweringContext& context);

} // namespace ptxrewrite::ir
