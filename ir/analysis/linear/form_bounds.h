// Bounds of a linear form in a launch, as text that a launcher evaluates. They can show that two accesses of a kernel
// never touch the same bytes.
#pragma once

#include "ir/analysis/linear/linear.h"

#include <optional>
#include <string>

namespace ptxrewrite::ir {

// Expressions of the side file's language over one launch. The form's integer value, with coefficients and literals
// read as signed, is in [low, high] for every thread and trip if `conditions` (may be empty) hold.
struct FormBounds {
  std::string low, high;
  std::string conditions;
};

// Returns nullopt if the bounds depend on values computed at run time. The form's obligations are not included.
std::optional<FormBounds> bounds_at_launch(const LinearForms& forms, const LinearForm& form);

// Bounds in all launches, for threads that reach `block`: from the limits of blocks and grids and from branches that
// dominate the block.
std::optional<Interval> bounds_in_all_launches(const LinearForms& forms, const LinearForm& form, BlockId block);

} // namespace ptxrewrite::ir
