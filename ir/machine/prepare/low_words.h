// Of what is written in 64 bits only the low word may be needed: indices that are made narrow again, addresses of local
// variables. Assemblers compute no more than that. Only in SSA form. Private to ir/machine: lower() works on what is
// left.
#pragma once

#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::ir {

// Nothing where both words of everything are needed; else with the ids of the original.
std::optional<Function> low_words(const Function& function);

} // namespace ptxrewrite::ir
