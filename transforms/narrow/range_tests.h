// `x >= 0 && x < w` with w >= 0 is one comparison of unsigned numbers; so is `x < 0 || x >= w`.
#pragma once

#include "transforms/common/family.h"
#include "transforms/common/value_bounds.h"

namespace ptxrewrite::transforms {

// Merges such tests in chains of and.pred and or.pred. Returns whether anything changed.
bool merge_range_tests(legal::Attempt& attempt, legal::SiteFilter& sites, ir::LinearForms& forms,
                       legal::BoundsOfValues& bounds);

} // namespace ptxrewrite::transforms
