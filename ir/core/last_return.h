// A body may end without `ret`: control that comes to its end returns.
#pragma once

#include "ir/core/function.h"

namespace ptxrewrite::ir {

// Does control come to the function's end in this block?
bool runs_off_the_end(const Function& function, BlockId block);
// Spells that return, so that blocks can be placed behind; does nothing where control does not come to the end.
void spell_last_return(Function& function);

} // namespace ptxrewrite::ir
