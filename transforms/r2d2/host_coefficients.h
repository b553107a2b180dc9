// Legal form, candidate 3 of R2D2: values that are the same for all threads of a launch become kernel parameters.
#pragma once

#include "transforms/r2d2/trial.h"

namespace ptxrewrite::transforms::legal {

// Nothing if it would change nothing. With `force`, moves every value that can be moved, profitable or not.
std::optional<Proposal> propose_coefficients_at_launch(const Trial& trial, bool force);

} // namespace ptxrewrite::transforms::legal
