// Legal form, candidate 3 of R2D2: what is the same for all threads of a launch becomes a kernel parameter.
#pragma once

#include "transforms/r2d2/trial.h"

namespace ptxrewrite::transforms::legal {

// True if the copy was changed. `force`: every value that can move moves, whether it saves anything or not.
bool move_coefficients_to_launch(const Trial& trial, bool force);

} // namespace ptxrewrite::transforms::legal
