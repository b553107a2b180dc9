// Checks the sections of R2D2's hardware form (`.r2d2.coefficient { ... }`, r2d2 §3.1) against control flow.
#pragma once

#include "ir/forms/finding.h"

#include <vector>

namespace ptxrewrite::ir {

// Control has to pass through a section as a whole: every path that reaches its start reaches its end and vice versa.
std::vector<FormFinding> check_sections(const Function& kernel);

} // namespace ptxrewrite::ir
