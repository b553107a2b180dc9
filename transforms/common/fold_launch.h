// Specializes a kernel for one launch: replaces values that the launch determines by literals.
//
// Uses ir/analysis/linear/linear.h: a value is replaced by a literal if its linear form evaluates to one and all
// obligations of the form hold exactly in this launch; a comparison is decided if the bounds of its sides decide it. So
// the linear analysis is the only definition of what instructions compute, and nothing is folded that it does not
// cover.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/function.h"

namespace ptxrewrite::transforms {

struct KnownLaunch {
  ir::LaunchValues launch; // parameters without bytes are unknown
  bool grid_known = false; // if false, `launch.grid` is the upper bound of the grid
};

struct FoldCounts {
  size_t literals = 0;   // values replaced by literals
  size_t conditions = 0; // predicates replaced by constants
  size_t blocks = 0;     // removed as unreachable
};

// Folds values, conditions and control flow until nothing changes, then removes unused code. The function must be in
// SSA form.
FoldCounts fold_for_launch(ir::Function& function, const KnownLaunch& known);

} // namespace ptxrewrite::transforms
