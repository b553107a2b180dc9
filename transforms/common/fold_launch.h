// What a kernel's values are in one launch, and the kernel with these values in their places.
//
// Rests on ir/analysis/linear/linear.h: a value is replaced by a literal where its form evaluates to one and everything
// that the form needs holds in this launch, exactly; a comparison is decided where the bounds of its sides decide it.
// So there is one statement of what instructions compute, the analysis', and nothing is folded that it does not know.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/function.h"

namespace ptxrewrite::transforms {

struct KnownLaunch {
  ir::LaunchValues launch; // parameters without bytes are unknown
  bool grid_known = false; // else any grid: `launch.grid` is the largest there is
};

struct FoldCounts {
  size_t literals = 0;   // values that became literals
  size_t conditions = 0; // predicates that became known
  size_t blocks = 0;     // that nothing reaches any more
};

// Folds values, conditions and control flow until nothing changes, then removes what nobody needs. SSA form.
FoldCounts fold_for_launch(ir::Function& function, const KnownLaunch& known);

} // namespace ptxrewrite::transforms
