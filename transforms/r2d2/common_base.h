// Legal form, candidate 1 of R2D2: accesses whose addresses differ by a compile-time constant share one register.
#pragma once

#include "transforms/r2d2/trial.h"

namespace ptxrewrite::transforms::legal {

// Returns whether the copy was changed.
bool share_common_bases(const Trial& trial);

} // namespace ptxrewrite::transforms::legal
