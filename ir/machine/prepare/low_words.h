// Demanded low words: a 64-bit computation of which only the low 32 bits are used (indices that are truncated again,
// addresses of local variables) is done in 32 bits. SSA form only. Private to ir/machine: lower() works on the result.
#pragma once

#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::ir {

// Returns nullopt if both words of every value are needed; otherwise a function with the ids of the original.
std::optional<Function> low_words(const Function& function);

} // namespace ptxrewrite::ir
