// `sext(P1+1)` as `sext(P1)+1`: sums whose extensions were moved inside are equal wherever the originals stood.
#pragma once

#include "ir/analysis/linear/linear.h"

#include <vector>

namespace ptxrewrite::transforms {

// Distributes the extensions in a sum over their operands. The result is equal under the obligations that are added,
// which `instruction` raises.
ir::ExpressionId move_extensions(ir::LinearForms& forms, ir::ExpressionId sum, ir::InstructionId instruction,
                                 std::vector<ir::ObligationId>& obligations);

} // namespace ptxrewrite::transforms
