// A body may end without `ret`: control that reaches its end returns implicitly.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// True if control can reach the end of the function in this block.
bool runs_off_the_end(const Function& function, BlockId block);
// Appends an explicit return, so that blocks can be placed after it; does nothing where control cannot reach the end.
void spell_last_return(Function& function);

} // namespace ptxrewrite::ir
