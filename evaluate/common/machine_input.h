// Finds a machine by the name that a user gives.
#pragma once

#include "ir/machine/figures/machine.h"
#include "support/result.h"
#include "support/text/console.h"

#include <string>

namespace ptxrewrite::evaluate {

// Accepts a target (sm_80), the name of a built-in machine (titanv), or a TOML file, which is read once and cached for
// the rest of the process. Thread-safe. Fails if there is no such machine. Returns nullptr for an invalid file, after
// showing the diagnostics.
Result<const ir::Machine*> machine_named(const std::string& name, const Console& console);

} // namespace ptxrewrite::evaluate
