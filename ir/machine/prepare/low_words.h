// Demanded low words: a 64-bit computation of which only the low 32 bits are used (indices that are truncated again,
// addresses of local variables) is done in 32 bits. SSA form only. Private to ir/machine: lower() works on the result.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/prepare/value_flow.h"

namespace ptxrewrite::ir {

// Returns false if both words of every value are needed. Ids stay valid.
bool shorten_to_low_words(Function& function);
// The same, given the definitions of the function: mostly they show that nothing is to be done.
bool shorten_to_low_words(Function& function, DefinitionsBetweenSteps& definitions);

} // namespace ptxrewrite::ir
