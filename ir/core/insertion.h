// Where passes put code that runs first.
#pragma once

#include "ir/core/builder.h"

namespace ptxrewrite::ir {

// The first instruction of the entry block behind the declarations that it begins with; invalid if there is none. A
// declaration that stands further down does no harm: destruct_ssa moves it in front of its first use.
InstructionId code_start(const Function& function);
// Builders in front of that, and in front of all that a block holds now. The block may be empty: labels are blocks.
Builder builder_at_code_start(Function& function);
Builder builder_at_start(Function& function, BlockId block);

} // namespace ptxrewrite::ir
