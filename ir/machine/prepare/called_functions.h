// The functions whose code is part of a kernel's.
#pragma once

#include "ir/core/function.h"

#include <vector>

namespace ptxrewrite::ir {

// The function's definition if `declared` is only a declaration; nullptr if there is none.
const Function* definition_of(const Function& declared);

// Those with a body that the function calls or whose address it takes, and those that these call, each once.
std::vector<const Function*> called_functions(const Function& function);

} // namespace ptxrewrite::ir
