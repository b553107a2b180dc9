// A machine by the name that a user gives it.
#pragma once

#include "ir/machine/figures/machine.h"
#include "support/result.h"
#include "support/text/console.h"

#include <string>

namespace ptxrewrite::evaluate {

// A target (sm_80), the name of a machine that is built in (titanv), or a TOML file of one, which is read once and kept
// for the rest of the process. Any thread. Error: no such machine. nullptr: the file is wrong, which was shown.
Result<const ir::Machine*> machine_named(const std::string& name, const Console& console);

} // namespace ptxrewrite::evaluate
