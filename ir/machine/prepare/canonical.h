// One way to write what can be written in several: an assembler takes them for the same. Only in SSA form. Private to
// ir/machine: lower() works on what is left.
//
// The sections of a hardware form stay as they are: what is written there is executed.
#pragma once

#include "ir/core/function.h"

#include <optional>

namespace ptxrewrite::ir {

// Nothing where there is nothing to do; else with the ids of the original.
std::optional<Function> canonical(const Function& function);

} // namespace ptxrewrite::ir
