// Legal form, candidates 2 and 5 of R2D2: addresses as a launch-uniform base and a 32-bit offset that many accesses
// share; and such an offset as the only induction variable of a loop.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/r2d2/trial.h"

namespace ptxrewrite::transforms::legal {

struct UniformBaseOptions {
  bool bases_at_launch = false; // candidate 3 follows: the threads do not compute the bases
  bool force = false;           // rewrite wherever it is legal, regardless of cost
};

// Are there accesses that candidate 2, or 5 (`inductions`), could rewrite?
bool has_base_plans(const ir::Function& kernel, AnalysisCache& analyses, const DischargePolicy& policy,
                    bool inductions);

// Candidate 2; nothing if it would change nothing.
std::optional<Proposal> propose_offsets(const Trial& trial, const UniformBaseOptions& options);
// Candidate 5: strength reduction. Accesses in a loop whose addresses advance by the same steps share one new induction
// variable.
std::optional<Proposal> propose_inductions(const Trial& trial, const UniformBaseOptions& options);

} // namespace ptxrewrite::transforms::legal
