// Legal form, candidate 2 of R2D2: addresses as a launch-uniform base and a 32-bit offset that many accesses share.
#pragma once

#include "transforms/legal/attempt.h"

namespace ptxrewrite::transforms::legal {

struct UniformBaseOptions {
  bool bases_at_launch = false; // candidate 3 follows: the bases will cost the threads nothing
  bool force = false;           // rewrite wherever it is right, whatever it costs
};

// True if the copy was changed.
bool share_offsets(Attempt& attempt, const UniformBaseOptions& options);

} // namespace ptxrewrite::transforms::legal
