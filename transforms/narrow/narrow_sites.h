// The two steps of pass `narrow`. Both ask the filter about each site and change the attempt's function. They return
// whether anything changed.
#pragma once

#include "transforms/common/family.h"

namespace ptxrewrite::transforms {

// Folds comparisons of masked high halves with 0 that the ranges decide, and the branches on them.
bool fold_width_tests(legal::Attempt& attempt, legal::SiteFilter& sites, AnalysisCache& analyses);

// Narrows all other instructions.
bool narrow_instructions(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms);

} // namespace ptxrewrite::transforms
