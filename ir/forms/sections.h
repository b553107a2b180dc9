// The sections of R2D2's hardware form (`.r2d2.coefficient { ... }`, r2d2 §3.1) and control flow.
#pragma once

#include "ir/forms/finding.h"

#include <vector>

namespace ptxrewrite::ir {

// Control runs through a section as a whole: where its beginning is reached, so is its end, and the other way round.
std::vector<FormFinding> check_sections(const Function& kernel);

} // namespace ptxrewrite::ir
