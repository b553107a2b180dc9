// The two steps of pass `narrow`. Both ask the filter about each place and change the attempt's function; true if
// anything changed.
#pragma once

#include "transforms/common/family.h"

namespace ptxrewrite::transforms {

// Comparisons of masked high halves with 0 that the ranges decide; the branches on them, too.
bool fold_width_tests(legal::Attempt& attempt, legal::SiteFilter& sites, AnalysisCache& analyses);

// Everything else.
bool narrow_instructions(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms);

} // namespace ptxrewrite::transforms
