// What a candidate of the legal form works on: a fresh copy of a kernel, and what is known of the kernel.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/manager/analyses.h"

namespace ptxrewrite::transforms::legal {

// A candidate looks into `kernel` and rewrites the attempt's function, a copy of it in which everything has the same
// number. Analyses are of the kernel: candidates that start from the same one share them.
struct Trial {
  Attempt& attempt;
  const ir::Function& kernel;
  AnalysisCache& analyses; // of `kernel`
};

} // namespace ptxrewrite::transforms::legal
