// Legal form, candidate 1 of R2D2: accesses whose addresses differ by a compile-time constant share one register.
#pragma once

#include "transforms/r2d2/trial.h"

namespace ptxrewrite::transforms::legal {

// Nothing if it would change nothing.
std::optional<Proposal> propose_common_bases(const Trial& trial);

} // namespace ptxrewrite::transforms::legal
