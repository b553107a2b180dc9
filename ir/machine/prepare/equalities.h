// Constants implied by branches: in the block where `x != c` is known to be false, x is c.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Where `setp.ne x, literal` of 32 bits was false, x is the literal: its readers there read that, as ptxas has them do
// (13.0; it does not do so for setp.eq, for ranges and for 64 bits). In SSA form. Values, blocks and instructions keep
// their ids; what is new comes behind them. Whether anything has changed.
bool use_equalities(Function& function);

} // namespace ptxrewrite::ir
