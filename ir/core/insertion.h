// Positions at which passes insert code that has to execute first.
#pragma once

#include "ir/core/builder.h"

namespace ptxrewrite::ir {

// The first instruction of the entry block that is not one of its leading declarations; invalid if there is none.
// Declarations further down need no care: destruct_ssa moves them before the first use.
InstructionId code_start(const Function& function);
// Builders positioned before code_start(), and before the first instruction of a block. The block may be empty.
Builder builder_at_code_start(Function& function);
Builder builder_at_start(Function& function, BlockId block);

} // namespace ptxrewrite::ir
