// Legal form, candidates 2 and 5 of R2D2: addresses as a launch-uniform base and a 32-bit offset that many accesses
// share; and such an offset as the one induction variable of a loop.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/r2d2/trial.h"

namespace ptxrewrite::transforms::legal {

struct UniformBaseOptions {
  bool bases_at_launch = false; // candidate 3 follows: the bases will cost the threads nothing
  bool force = false;           // rewrite wherever it is right, whatever it costs
};

// Candidate 2. True if the copy was changed.
bool share_offsets(const Trial& trial, const UniformBaseOptions& options);
// Candidate 5: strength reduction. Accesses in a loop whose addresses move alike get one new induction variable.
bool share_inductions(const Trial& trial, const UniformBaseOptions& options);

} // namespace ptxrewrite::transforms::legal
