// Canonicalisation: brings equivalent spellings of one operation into a single form, as an assembler does before
// instruction selection. SSA form only. Private to ir/machine: lower() works on the result.
//
// Sections of a hardware form are not touched: the proposed machine executes them as written.
#pragma once

#include "ir/core/function.h"
#include "ir/machine/prepare/value_flow.h"

#include <cstdint>

namespace ptxrewrite::ir {

// Returns false if nothing changes. Ids stay valid. `definitions`: of the function, before and after.
bool make_canonical(Function& function, uint32_t compute_capability, DefinitionsBetweenSteps& definitions);

} // namespace ptxrewrite::ir
