// Between which numbers a linear form stays in a launch, as text that a launcher evaluates: from such bounds it can be
// told whether two accesses of a kernel ever meet.
#pragma once

#include "ir/analysis/linear/linear.h"

#include <optional>
#include <string>

namespace ptxrewrite::ir {

// Expressions of the side file's language over one launch. The form's integer value, coefficients and literals read as
// signed, is in [low, high] for every thread and trip if `conditions` (perhaps none: empty) hold.
struct FormBounds {
  std::string low, high;
  std::string conditions;
};

// Nothing where only the running kernel can tell. The form's obligations are not part of it.
std::optional<FormBounds> bounds_at_launch(const LinearForms& forms, const LinearForm& form);

// The same in all launches, for threads that come to `block`: by the limits of blocks and grids and by branches that
// dominate the block.
std::optional<Interval> bounds_in_all_launches(const LinearForms& forms, const LinearForm& form, BlockId block);

} // namespace ptxrewrite::ir
