// The input of a candidate of the legal form: a fresh copy of a kernel, and the analyses of the kernel.
#pragma once

#include "transforms/common/attempt.h"
#include "transforms/manager/analyses.h"

namespace ptxrewrite::transforms::legal {

// A candidate analyses `kernel` and rewrites the attempt's function, a copy of it with the same IDs. Analyses are those
// of the kernel: candidates that start from the same kernel share them.
struct Trial {
  Attempt& attempt;
  const ir::Function& kernel;
  AnalysisCache& analyses; // of `kernel`
};

} // namespace ptxrewrite::transforms::legal
